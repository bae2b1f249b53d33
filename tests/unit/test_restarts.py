"""Pauses between restarts grow while a process keeps dying; one that ran for a while gets a new count."""

from analytics_service.processes.supervisor import Restarts


def test_delays_grow_with_each_short_lived_start_up_to_the_last_one() -> None:
    restarts = Restarts(delays=(1.0, 2.0), long_lived=60.0)
    assert [restarts.next_delay(0.5) for _ in range(4)] == [1.0, 2.0, 2.0, 2.0]


def test_a_long_lived_start_begins_a_new_count() -> None:
    restarts = Restarts(delays=(1.0, 2.0), long_lived=60.0)
    assert restarts.next_delay(0.5) == 1.0
    assert restarts.next_delay(59.9) == 2.0
    assert restarts.next_delay(60.0) == 1.0
    assert restarts.next_delay(0.5) == 2.0


def test_the_service_waits_up_to_half_a_minute_before_a_restart() -> None:
    restarts = Restarts()
    assert [restarts.next_delay(0.0) for _ in range(9)] == [0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 30.0]
