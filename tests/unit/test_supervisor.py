"""The supervisor of child processes: every transition, with a clock and children that the test controls."""

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

import pytest

from analytics_service.errors import ProcessError
from analytics_service.supervisor import Program, Supervisor


@dataclass
class FakeChild:
    """A child that runs until the test ends it. `stubborn` ones ignore requests to stop."""

    stubborn: bool = False
    code: int | None = None
    events: list[str] = field(default_factory=list)

    def poll(self) -> int | None:
        return self.code

    def terminate(self) -> None:
        self.events.append("asked to stop")
        if not self.stubborn:
            self.code = 0

    def ends_within(self, seconds: float) -> bool:
        self.events.append(f"waited {seconds:g} s")
        return self.code is not None

    def kill(self) -> None:
        self.events.append("killed")
        self.code = -9

    def send_signal(self, number: int) -> None:
        self.events.append(f"signal {number}")

    def end_input(self) -> None:
        self.events.append("pipe closed")


def refuse() -> FakeChild:
    raise OSError(12, "no memory")


class FakeProgram(Program):
    """A program whose children the test supplies."""

    name = "test program"
    grace = 30.0
    ready_seconds = 120.0
    where_logged = "See the log."

    def __init__(self) -> None:
        self.children: list[FakeChild] = []
        self.next_child = FakeChild
        self.adaptations = 0
        self.adapted: list[int] = []

    def launch(self) -> FakeChild:
        self.children.append(self.next_child())
        return self.children[-1]

    def adapt(self) -> bool:
        self.adapted.append(len(self.children))
        return len(self.adapted) <= self.adaptations


class Scene:
    def __init__(self) -> None:
        self.now = 1000.0
        self.program = FakeProgram()
        self.during_pause: Callable[[], None] = lambda: None
        self.supervisor = Supervisor(self.program, clock=lambda: self.now, pause=self._pause)

    def _pause(self, seconds: float) -> None:
        self.now += seconds
        self.during_pause()

    @property
    def child(self) -> FakeChild:
        return self.program.children[-1]

    @property
    def starts(self) -> int:
        return len(self.program.children)

    def check_after(self, seconds: float) -> None:
        self.now += seconds
        self.supervisor.check()

    def die(self, code: int = 3, *, after: float = 1.0) -> None:
        """The newest child becomes ready, runs for a while and ends, and the supervisor notices."""
        self.supervisor.check()
        self.check_after(after)
        self.child.code = code
        self.supervisor.check()


@pytest.fixture
def scene() -> Scene:
    """A supervisor that is not started yet."""
    return Scene()


@pytest.fixture
def running() -> Scene:
    """A supervisor of a program that runs and is ready."""
    scene = Scene()
    scene.supervisor.start()
    return scene


def test_a_start_returns_once_the_child_is_ready(scene: Scene) -> None:
    answers = iter([False, False, True])
    scene.program.answers = lambda: next(answers)
    scene.supervisor.start()
    assert scene.starts == 1
    assert next(answers, None) is None


def test_a_child_that_ends_before_it_is_ready_fails_the_first_start(scene: Scene) -> None:
    scene.program.answers = lambda: False
    scene.during_pause = lambda: setattr(scene.child, "code", 3)
    with pytest.raises(ProcessError, match=r"^The test program ended with exit code 3\. See the log\.$"):
        scene.supervisor.start()
    assert scene.starts == 1
    assert scene.child.events == ["pipe closed"]


def test_a_child_that_is_never_ready_is_killed_and_fails_the_first_start(scene: Scene) -> None:
    begun = scene.now
    scene.program.answers = lambda: False
    with pytest.raises(ProcessError, match=r"^The test program has not answered for 120 s\. See the log\.$"):
        scene.supervisor.start()
    assert scene.now - begun == pytest.approx(120, abs=0.1)
    assert scene.child.events == ["killed", "pipe closed"]


def test_a_first_start_is_tried_again_twice_at_most_while_the_program_can_adapt() -> None:
    for failures in (1, 3):
        scene = Scene()
        scene.program.adaptations = 9
        scene.program.next_child = lambda s=scene, most=failures: FakeChild(code=1 if s.starts < most else None)
        with pytest.raises(ProcessError) if failures == 3 else nullcontext():
            scene.supervisor.start()
        assert scene.starts == min(failures + 1, 3)
        assert scene.program.adapted == [1, 2][:failures]
        assert scene.program.children[0].events == ["pipe closed"]


def test_a_child_that_dies_is_restarted_after_a_delay(running: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    running.die(-9)
    assert running.child.events == ["pipe closed"]
    running.check_after(0.09)
    assert running.starts == 1
    running.check_after(0.01)
    assert running.starts == 2
    running.supervisor.check()
    assert caplog.messages == [
        "The test program was killed by signal 9, possibly because memory ran out. See the log. "
        "Restarting it in 0.1 s.",
        "The test program is ready again.",
    ]


def test_a_restart_that_the_system_refuses_is_tried_again(running: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    running.die()
    running.program.next_child = refuse
    for _ in range(1100):
        running.check_after(30.0)
    why = "The test program could not be started: [Errno 12] no memory."
    assert caplog.messages[1:3] == [f"{why} Restarting it in {seconds} s." for seconds in (0.2, 0.4)]
    assert caplog.messages[-1] == f"{why} Restarting it in 30.0 s."
    running.program.next_child, running.program.answers = FakeChild, lambda: False
    running.check_after(30.0)
    running.check_after(1.0)
    assert running.starts == 2
    assert "is ready again" not in caplog.text
    running.program.answers = lambda: True
    running.check_after(1.0)
    assert caplog.messages[-1] == "The test program is ready again."


def test_a_child_that_does_not_answer_for_twenty_seconds_is_killed_and_restarted(
    running: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    running.program.silent_seconds = 20.0
    running.program.answers = lambda: False
    for _ in range(19):
        running.check_after(1.0)
    running.program.answers = lambda: True
    running.check_after(1.0)
    running.program.answers = lambda: False
    for _ in range(19):
        running.check_after(1.0)
    assert running.child.events == []
    running.check_after(0.9)
    assert running.child.events == []
    running.check_after(0.1)
    assert running.child.events == ["killed", "pipe closed"]
    assert caplog.messages == ["The test program has not answered for 20 s. See the log. Restarting it in 0.1 s."]
    # The new child may take as long.
    running.check_after(1.0)
    running.program.answers = lambda: True
    running.check_after(1.0)
    running.program.answers = lambda: False
    for _ in range(19):
        running.check_after(1.0)
    assert running.starts == 2
    assert running.child.events == []


@pytest.mark.parametrize(("silent_seconds", "asked_at"), [(20.0, [1001.0, 1002.0, 1003.0]), (math.inf, [])])
def test_a_running_child_is_asked_once_a_second_if_its_silence_has_a_limit(
    running: Scene, silent_seconds: float, asked_at: list[float]
) -> None:
    asked: list[float] = []

    def answers() -> bool:
        asked.append(running.now)
        return True

    running.program.silent_seconds, running.program.answers = silent_seconds, answers
    for _ in range(12):
        running.check_after(0.25)
    assert asked == asked_at


def test_a_pause_of_the_supervisor_costs_no_healthy_child(running: Scene) -> None:
    """Its child could not be asked meanwhile."""
    running.program.silent_seconds = 20.0
    running.program.answers = lambda: False
    running.check_after(3600.0)
    running.program.answers = lambda: True
    running.check_after(1.0)
    assert (running.starts, running.child.events) == (1, [])


def test_a_child_with_a_fault_is_killed_and_restarted_although_it_answers(
    running: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    running.program.fault = lambda: "has lost its memory"
    running.check_after(1.0)
    assert running.child.events == ["killed", "pipe closed"]
    assert caplog.messages == ["The test program has lost its memory. See the log. Restarting it in 0.1 s."]


def test_a_child_that_does_not_stop_is_killed_after_the_grace_period(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.program.next_child = lambda: FakeChild(stubborn=True)
    scene.supervisor.start()
    scene.supervisor.stop()
    assert scene.child.events == ["asked to stop", "waited 30 s", "killed", "pipe closed"]
    assert caplog.messages == ["The test program did not stop in 30 s. Killing it."]


@pytest.mark.parametrize("noticed", [True, False])
def test_a_stop_after_a_child_has_ended_asks_nobody_and_starts_nothing_any_more(running: Scene, noticed: bool) -> None:
    if noticed:
        running.die()
    else:
        running.child.code = 3
    running.supervisor.stop()
    running.check_after(3600.0)
    assert running.starts == 1
    assert running.child.events == ["pipe closed"]


def test_a_restart_that_is_never_ready_is_killed_and_counts_as_short_lived(running: Scene) -> None:
    running.program.answers = lambda: False
    running.die()
    running.check_after(1.0)
    for _ in range(119):
        running.check_after(1.0)
    assert running.child.events == []
    running.check_after(1.0)
    assert running.child.events == ["killed", "pipe closed"]
    running.check_after(0.15)
    assert running.starts == 2
    running.check_after(0.1)
    assert running.starts == 3
    # The next child has as long.
    for _ in range(119):
        running.check_after(1.0)
    assert running.child.events == []


@pytest.mark.parametrize("silent_seconds", [math.inf, 20.0])
def test_delays_grow_with_each_short_lived_start_and_a_long_lived_one_begins_a_new_count(
    scene: Scene, silent_seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    scene.program.silent_seconds = silent_seconds
    scene.supervisor.start()
    for lifetime in (*[59.9] * 11, 60.0, 0.5):
        scene.die(after=lifetime)
        scene.check_after(30.0)
    delays = [float(message.split()[-2]) for message in caplog.messages if "Restarting it in" in message]
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 0.1, 0.2]


# A replaced child finishes what it has begun beside its successor.


def test_a_replacement_starts_before_the_input_of_the_running_child_is_closed(running: Scene) -> None:
    first = running.child
    running.program.next_child = lambda: FakeChild(events=[f"after {first.events}"])
    running.supervisor.replace()
    running.supervisor.signal(21)
    assert (first.events, running.child.events) == (["pipe closed"], ["after []", "signal 21"])
    running.check_after(1.0)
    assert running.starts == 2


def test_a_replacement_that_the_system_refuses_leaves_the_running_child(
    running: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    running.program.next_child = refuse
    running.supervisor.replace()
    assert running.child.events == []
    why = "The test program could not be started: [Errno 12] no memory."
    assert caplog.messages == [f"{why} The running one continues."]
