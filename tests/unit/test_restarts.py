"""A process that keeps dying is given up; one that lived gets a new count."""

from analytics_service.processes.restarts import Restarts


def test_short_lived_starts_wait_longer_and_longer_and_are_then_given_up() -> None:
    restarts = Restarts(delays=(1.0, 2.0), long_lived=60.0)
    assert [restarts.next_delay(0.5) for _ in range(4)] == [1.0, 2.0, None, None]


def test_a_start_that_lived_begins_a_new_count() -> None:
    restarts = Restarts(delays=(1.0, 2.0), long_lived=60.0)
    assert restarts.next_delay(0.5) == 1.0
    assert restarts.next_delay(59.9) == 2.0
    assert restarts.next_delay(60.0) == 1.0
    assert restarts.next_delay(0.5) == 2.0
    assert restarts.next_delay(0.5) is None
