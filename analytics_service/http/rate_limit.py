"""How many requests a client may make (rule 3.5). All workers of a gunicorn count together.

Counts are in memory that the workers share, because a client's connections are spread over all of them. Libraries count
in one process, or need a server such as Redis.
"""

import fcntl
import mmap
import os
import secrets
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b
from typing import NamedTuple

from analytics_service.config.values import Rate

_SECOND = 10**9
# Names of the headers about the limit.
POLICY, LEFT = "RateLimit-Policy", "RateLimit"
# A client's key, the number of its window, and its requests in that window and in the previous one.
_SLOT = struct.Struct("<QQII")
# Slots of a bucket: twice the average number of clients in a bucket if there are 65,536 clients, because some buckets
# have more.
_WAYS = 16
_BUCKET_SIZE = _WAYS * _SLOT.size
# 3 MiB.
_BUCKETS = 8192


class Quota(NamedTuple):
    """A client's quota after a request: whether that request is allowed, how many further requests are, and the seconds
    until that number grows."""

    allowed: bool
    remaining: int
    seconds: int


class Counts:
    """The request counts of recent clients, in memory of a fixed size that forked processes share.

    A full bucket evicts the client whose last window is oldest; among equals, the one with fewest requests. Of 65,536
    clients about one in a thousand is evicted; of more clients, a larger share.
    """

    def __init__(self, buckets: int = _BUCKETS) -> None:
        self._buckets = buckets
        # Nobody can choose addresses that fall into one bucket.
        self._secret = secrets.token_bytes(16)
        # A file in memory, because the system releases its locks when their process is killed. It is never closed: that
        # would release the locks of other threads.
        self._file = os.memfd_create("request counts")
        os.ftruncate(self._file, buckets * _BUCKET_SIZE)
        self._memory = mmap.mmap(self._file, 0)
        self._lock = threading.Lock()

    def take(self, client: str, rate: Rate, now: int) -> Quota:
        """Count a request of a client at a monotonic nanosecond, unless it exceeds the limit.

        The window slides: requests in the previous fixed window count in proportion to its overlap with the sliding
        window, as if they had been spread evenly.
        """
        key = int.from_bytes(blake2b(client.encode(), digest_size=8, key=self._secret).digest(), "little") or 1
        span = rate.seconds * _SECOND
        window, elapsed = divmod(now, span)
        with self._bucket(key % self._buckets) as begin:
            slot, current, previous = self._find(begin, key, window)
            used = current + _share(previous, span - elapsed, span)
            allowed = used < rate.requests
            if allowed:
                current, used = current + 1, used + 1
                _SLOT.pack_into(self._memory, slot, key, window, current, previous)
        wait = _wait_until(used - 1, current, previous, elapsed, span)
        return Quota(allowed, rate.requests - used if allowed else 0, max(-(-wait // _SECOND), 1))

    @contextmanager
    def _bucket(self, number: int) -> Iterator[int]:
        """Lock a bucket. Yields the offset at which it begins."""
        begin = number * _BUCKET_SIZE
        with self._lock:
            fcntl.lockf(self._file, fcntl.LOCK_EX, _BUCKET_SIZE, begin)
            try:
                yield begin
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN, _BUCKET_SIZE, begin)

    def _find(self, begin: int, key: int, window: int) -> tuple[int, int, int]:
        """A client's slot, and its requests in the window and in the previous window."""
        oldest, oldest_slot = None, begin
        for slot in range(begin, begin + _BUCKET_SIZE, _SLOT.size):
            slot_key, last, current, previous = _SLOT.unpack_from(self._memory, slot)
            if slot_key == key:
                if last == window:
                    return slot, current, previous
                return slot, 0, current if last == window - 1 else 0
            if oldest is None or (last, current) < oldest:
                oldest, oldest_slot = (last, current), slot
        return oldest_slot, 0, 0


def _share(previous: int, left: int, span: int) -> int:
    """How many requests of the previous window still count, with `left` of the present window to go; rounded up."""
    return -(-previous * left // span)


def _wait_until(used: int, current: int, previous: int, elapsed: int, span: int) -> int:
    """Nanoseconds until at most `used` requests still count, if no further requests come."""
    if previous and current <= used:
        return max(span - elapsed - (used - current) * span // previous, 0)
    # All of the present window's requests count until it ends, and then an ever smaller share of them.
    return span - elapsed + max(span - used * span // current, 0)


@cache
def shared_counts() -> Counts:
    """The counts of this process, and of the processes that it forks after the first call."""
    return Counts()


class RateLimit:
    """The limit of each client. `clock` returns monotonic nanoseconds, the same in all workers."""

    def __init__(self, rate: Rate, counts: Counts, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.rate = rate
        self._counts = counts
        self._clock = clock

    def take(self, client: str) -> Quota:
        return self._counts.take(client, self.rate, self._clock())

    @property
    def policy(self) -> str:
        """The value of the header POLICY (draft-ietf-httpapi-ratelimit-headers-10)."""
        return f'"default";q={self.rate.requests};w={self.rate.seconds}'

    @staticmethod
    def left(quota: Quota) -> str:
        return f'"default";r={quota.remaining};t={quota.seconds}'
