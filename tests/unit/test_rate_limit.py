"""Counts of requests: a sliding window, shared by forked processes, in memory of a fixed size."""

import os
import random
from collections import deque

import pytest

from analytics_service.config.values import Rate
from analytics_service.http.rate_limit import Counts

SECOND = 10**9
# From 3.12 on Python warns of forks beside threads. These children only count.
FORKS = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def taken(counts: Counts, client: str, rate: Rate, now: int, times: int) -> int:
    return sum(counts.take(client, rate, now).allowed for _ in range(times))


# With some of these seeds refusals are due to requests of the present window, with others to those of the one before.
@pytest.mark.parametrize("seed", [0, 1, 6, 8, 15])
def test_whoever_waits_as_told_is_allowed_the_next_request_but_not_a_second_earlier(seed: int) -> None:
    dice, counts = random.Random(seed), Counts(1)
    rate, now = Rate(dice.randint(1, 20), dice.randint(2, 100)), dice.randrange(10**15)
    for _ in range(100):
        quota = counts.take("a", rate, now)
        if quota.allowed:
            now += dice.randrange(2 * rate.seconds * SECOND // rate.requests)
            continue
        assert quota.remaining == 0
        if quota.seconds > 1:
            assert not counts.take("a", rate, now + (quota.seconds - 1) * SECOND - 1).allowed
        now += quota.seconds * SECOND
        assert counts.take("a", rate, now).allowed


@pytest.mark.parametrize("seed", range(5))
def test_no_window_has_many_more_requests_than_are_allowed_and_an_even_pace_is_never_refused(seed: int) -> None:
    dice, counts = random.Random(seed), Counts(1)
    rate, now, recent = Rate(50, 60), 0, deque[int]()
    for _ in range(2000):
        now += dice.choice((0, 0, 0, SECOND // 2, SECOND, 5 * SECOND))
        if counts.take("a", rate, now).allowed:
            recent.append(now)
        while recent and recent[0] <= now - rate.seconds * SECOND:
            recent.popleft()
        # At most what a window allows and half as much again: requests are not spread evenly over the window before.
        assert len(recent) <= 75
    even = [counts.take("b", rate, now + number * 2 * SECOND).allowed for number in range(500)]
    assert all(even)


def test_remaining_requests_can_be_made_and_no_more() -> None:
    counts, rate = Counts(), Rate(10, 60)
    for now in (0, 70 * SECOND, 100 * SECOND, 119 * SECOND):
        remaining = counts.take("a", rate, now).remaining
        assert taken(counts, "a", rate, now, remaining + 5) == remaining


@FORKS
def test_forked_processes_count_together() -> None:
    counts, rate = Counts(), Rate(100, 60)
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            os._exit(taken(counts, "a", rate, 0, 50))
        children.append(child)
    allowed = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert sum(allowed) == 100
    assert taken(counts, "a", rate, 0, 1) == 0


@FORKS
def test_a_process_that_is_killed_while_it_counts_stops_nobody() -> None:
    counts = Counts(1)
    child = os.fork()
    if child == 0:
        with counts._bucket(0):
            os._exit(0)
    os.waitpid(child, 0)
    assert taken(counts, "a", Rate(1, 60), 0, 1) == 1


def test_of_too_many_clients_those_who_have_been_away_for_longest_are_forgotten() -> None:
    counts, rate = Counts(buckets=1), Rate(1, 60)
    # A bucket has places for sixteen.
    for number in range(16):
        assert taken(counts, str(number), rate, number * 60 * SECOND, 1) == 1
    now = 15 * 60 * SECOND
    assert taken(counts, "other", rate, now, 1) == 1
    assert taken(counts, "15", rate, now, 1) == 0
    assert taken(counts, "other", rate, now, 1) == 0


def test_of_as_many_clients_as_are_promised_hardly_any_is_forgotten() -> None:
    """An eighth of the clients, in an eighth of the memory. About 11 of them are forgotten, as chance has it."""
    counts, rate, clients = Counts(buckets=1024), Rate(1, 60), [str(number) for number in range(65_536 // 8)]
    assert all(counts.take(client, rate, 0).allowed for client in clients)
    assert sum(counts.take(client, rate, SECOND).allowed for client in clients) < 45
