"""Clients that ask a service without a pause, each in a thread, and note every request that failed."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.processes import PATIENCE, until

_PATHS = ("/api/v1/assets/prices?with_text=true", "/healthz")


@dataclass
class Load:
    """What happened to the requests so far."""

    answered: int = 0
    failures: list[str] = field(default_factory=list)

    def goes_on(self) -> None:
        """Return after a hundred more answers. Fail if a request failed."""
        enough = self.answered + 100
        until(lambda: self.failures or self.answered >= enough)
        assert self.failures == []


@contextmanager
def load(bind: str) -> Iterator[Load]:
    """Three clients for the duration of the block: one keeps its connections, two open one for each request."""
    so_far, ended = Load(), threading.Event()
    clients = [threading.Thread(target=_ask, args=(bind, keeps, so_far, ended)) for keeps in (True, False, False)]
    for client in clients:
        client.start()
    try:
        so_far.goes_on()
        yield so_far
        so_far.goes_on()
    finally:
        ended.set()
        for client in clients:
            client.join()


def _ask(bind: str, keeps: bool, so_far: Load, ended: threading.Event) -> None:
    client = http.client.HTTPConnection(bind, timeout=PATIENCE)
    while not ended.is_set():
        for path in _PATHS:
            try:
                # Connects again if the last answer announced the end of the connection.
                client.request("GET", path)
                answer = client.getresponse()
                answer.read()
                if answer.status != http.client.OK:
                    so_far.failures.append(f"{path}: {answer.status}")
            except (OSError, http.client.HTTPException) as error:
                so_far.failures.append(f"{path}: {error!r}")
                client.close()
            so_far.answered += 1
            if not keeps:
                client.close()
    client.close()
