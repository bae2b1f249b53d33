"""Replacing a supervised program while it runs: there is always one that is ready."""

import logging
import threading
from collections.abc import Callable

import pytest

from analytics_service.processes.supervisor import Replaceable, Restarts, Supervisor
from tests.unit.test_supervisor import FakeChild, FakeProgram


class Scene:
    """A replaceable program; each instance of it is a program of its own."""

    def __init__(self) -> None:
        self.programs: list[FakeProgram] = []
        self.ready: Callable[[], bool] = lambda: True
        self.lacking = ""
        self.service = Replaceable(self._make)

    def _make(self) -> Supervisor:
        program = FakeProgram()
        program.ready, program.lacking = self.ready, self.lacking
        self.programs.append(program)
        now = iter(range(10**6))
        return Supervisor(program, Restarts(), clock=lambda: float(next(now)), pause=lambda _: None)

    def events(self) -> list[list[str]]:
        """What happened to the child of each program."""
        return [child.events for program in self.programs for child in program.children]


def test_the_running_one_is_stopped_once_its_successor_is_ready() -> None:
    scene = Scene()
    scene.service.start()
    scene.service.replace()
    assert scene.events() == [["asked to stop", "waited 30 s", "pipe closed"], []]


def test_a_successor_that_does_not_get_ready_leaves_the_running_one(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.service.start()
    scene.ready = lambda: False
    with caplog.at_level(logging.ERROR):
        scene.service.replace()
    assert scene.events() == [[], ["killed", "pipe closed"]]
    assert caplog.messages == [
        "The test program was not ready after 120 s. See the log. The one that was running goes on."
    ]
    scene.ready = lambda: True
    scene.service.replace()
    scene.service.stop()
    assert [events[0] for events in scene.events()] == ["asked to stop", "killed", "asked to stop"]


def test_a_successor_that_is_not_able_leaves_the_running_one(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.service.start()
    scene.lacking = "The store is away."
    with caplog.at_level(logging.ERROR):
        scene.service.replace()
    assert scene.events() == [[], ["asked to stop", "waited 30 s", "pipe closed"]]
    assert caplog.messages == [
        "The new test program is not able to take over: The store is away. The one that was running goes on."
    ]
    scene.service.stop()
    assert scene.events()[0] == ["asked to stop", "waited 30 s", "pipe closed"]


def test_the_successor_is_checked_and_gets_the_signals() -> None:
    scene = Scene()
    scene.service.start()
    scene.service.replace()
    scene.service.signal(21)
    assert scene.events()[1] == ["signal 21"]
    scene.programs[1].children[0].code = 1
    for _ in range(4):
        scene.service.check()
    assert [len(program.children) for program in scene.programs] == [1, 2]


def test_a_successor_that_the_system_refuses_leaves_the_running_one(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.service.start()
    make = scene.service._make

    def refused() -> Supervisor:
        supervisor = make()
        scene.programs[-1].next_child = refuse
        return supervisor

    scene.service._make = refused
    with caplog.at_level(logging.ERROR):
        scene.service.replace()
    assert scene.events() == [[]]
    assert caplog.messages == [
        "The test program could not be started: [Errno 12] no memory. The one that was running goes on."
    ]


def test_a_signal_waits_for_a_check_that_may_take_the_child_away() -> None:
    scene = Scene()
    scene.service.start()
    checking, goes_on = threading.Event(), threading.Event()
    child = scene.programs[0].children[0]

    def poll() -> int:
        checking.set()
        assert goes_on.wait(60)
        return 1

    child.poll = poll  # type: ignore[method-assign]
    check = threading.Thread(target=scene.service.check)
    check.start()
    assert checking.wait(60)
    signal = threading.Thread(target=scene.service.signal, args=(21,))
    signal.start()
    signal.join(0.1)
    assert signal.is_alive()
    goes_on.set()
    check.join(60)
    signal.join(60)
    # The child is gone, so nobody gets the signal.
    assert scene.events() == [["pipe closed"]]


def refuse() -> FakeChild:
    raise OSError(12, "no memory")


def test_a_stop_during_a_replacement_stops_both() -> None:
    scene = Scene()
    scene.service.start()

    def interrupt() -> bool:
        if len(scene.programs[1].children) == 1:
            raise SystemExit
        return False

    scene.ready = interrupt
    with pytest.raises(SystemExit):
        scene.service.replace()
    scene.service.stop()
    assert [events[0] for events in scene.events()] == ["asked to stop", "asked to stop"]


def test_a_stop_while_the_one_before_is_stopped_stops_both() -> None:
    scene = Scene()
    scene.service.start()
    before = scene.programs[0].children[0]
    before.stubborn = True

    def interrupt(seconds: float) -> bool:
        raise SystemExit

    before.ends_within = interrupt  # type: ignore[method-assign]
    with pytest.raises(SystemExit):
        scene.service.replace()
    del before.ends_within
    scene.service.stop()
    assert scene.events() == [
        ["asked to stop", "asked to stop", "waited 30 s", "killed", "pipe closed"],
        ["asked to stop", "waited 30 s", "pipe closed"],
    ]
