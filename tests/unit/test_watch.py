"""Programs that run side by side for the duration of a block."""

import threading
from collections.abc import Callable

import pytest

from analytics_service.errors import ProcessError
from analytics_service.supervisor import run_children


class FakeSupervisor:
    """Records calls; its checks can be made to fail."""

    def __init__(self, name: str, events: list[str], check: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self.events = events
        self.check = check

    def start(self) -> None:
        self.events.append(f"start {self.name}")

    def stop(self) -> None:
        self.events.append(f"stop {self.name}")


def fail() -> None:
    raise ProcessError("it keeps dying")


def test_programs_start_in_order_and_stop_in_reverse_also_when_the_block_fails() -> None:
    events: list[str] = []
    with pytest.raises(KeyError), run_children([FakeSupervisor("a", events), FakeSupervisor("b", events)]):
        events.append("block")
        raise KeyError
    assert events == ["start a", "start b", "block", "stop b", "stop a"]


def test_every_program_is_stopped_when_one_of_them_does_not_start() -> None:
    events: list[str] = []
    second = FakeSupervisor("b", events)
    second.start = fail  # type: ignore[method-assign]
    with pytest.raises(ProcessError), run_children([FakeSupervisor("a", events), second]):
        raise AssertionError("the block began")
    assert events == ["start a", "stop b", "stop a"]


def test_programs_are_checked_until_the_block_ends() -> None:
    checked = threading.Event()
    supervisor = FakeSupervisor("a", [], checked.set)
    others = set(threading.enumerate())
    with run_children([supervisor]):
        assert checked.wait(60)
        [watcher] = [one for one in threading.enumerate() if one not in others and one.name == "process-watcher"]
    assert not watcher.is_alive()
