"""A client that asks for the largest pages on many connections does not keep others from being answered."""

import http.client
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.acceptance.conftest import HOURS, Service
from tests.processes import PATIENCE, slack, until

BUCKETS = 10_000
CONNECTIONS = 20
# Without the bound on threads /healthz waits for more than a dozen pages, each of which takes as long as this.
BOUND = 0.1


@dataclass
class GreedyClient:
    """Connections that ask for one page of 100,000 points after the other. No page is asked for twice."""

    service: Service
    pages: Iterator[int] = field(default_factory=lambda: iter(range(3600 * HOURS[0], 3600 * HOURS[-BUCKETS], 60)))
    answers: Counter[tuple[int, str | None]] = field(default_factory=Counter)
    stopped: threading.Event = field(default_factory=threading.Event)

    def ask(self) -> None:
        client = http.client.HTTPConnection(self.service.bind, timeout=PATIENCE)
        while not self.stopped.is_set():
            start = next(self.pages)
            query = f"start={start}&end={start + 3600 * BUCKETS}&period=h&limit={BUCKETS}"
            client.request("GET", f"/api/v1/assets/price-history?{query}", headers={"Accept-Encoding": "gzip"})
            answer = client.getresponse()
            answer.read()
            self.answers[answer.status, answer.getheader("Retry-After")] += 1
            # It is patient for a moment only, not for as long as it was told to be.
            self.stopped.wait(0.0 if answer.status == http.client.OK else 0.3)
        client.close()


@contextmanager
def greedy_client(service: Service) -> Iterator[GreedyClient]:
    """A client that asks for the duration of the block, which begins when it has had some answers."""
    client = GreedyClient(service)
    threads = [threading.Thread(target=client.ask) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: client.answers.total() > CONNECTIONS // 2)
        yield client
    finally:
        client.stopped.set()
        for thread in threads:
            thread.join()


def seconds_of_health(service: Service) -> float:
    """How long /healthz takes at the median of 30 connections."""
    taken = []
    for _ in range(30):
        begun = time.monotonic()
        assert service.get("/healthz")[0] == http.client.OK
        taken.append(time.monotonic() - begun)
    return statistics.median(taken)


def test_20_connections_that_ask_for_100_000_points_each_leave_threads_for_others(imported: Service) -> None:
    """The worker has eight threads, and 10,000 hours of ten assets."""
    with greedy_client(imported) as client:
        taken = seconds_of_health(imported)
    assert taken < BOUND * slack(), client.answers
    # Pages go on being built, and who is refused is told to come back later.
    assert {*client.answers} == {(200, None), (503, "5")}
