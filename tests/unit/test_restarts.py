"""A process that keeps dying is given up; one that ran for a while gets a new count."""

from analytics_service.processes.restarts import Restarts


def test_delays_grow_with_each_short_lived_start_until_it_is_given_up() -> None:
    restarts = Restarts(delays=(1.0, 2.0), long_lived=60.0)
    assert [restarts.next_delay(0.5) for _ in range(4)] == [1.0, 2.0, None, None]


def test_a_long_lived_start_begins_a_new_count() -> None:
    restarts = Restarts(delays=(1.0, 2.0), long_lived=60.0)
    assert restarts.next_delay(0.5) == 1.0
    assert restarts.next_delay(59.9) == 2.0
    assert restarts.next_delay(60.0) == 1.0
    assert restarts.next_delay(0.5) == 2.0
    assert restarts.next_delay(0.5) is None


def test_the_service_waits_longer_before_each_restart_and_gives_up_after_five() -> None:
    restarts = Restarts()
    assert [restarts.next_delay(0.0) for _ in range(6)] == [0.1, 0.5, 1.0, 2.0, 5.0, None]
