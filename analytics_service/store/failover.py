"""The servers that settings name: which of them is asked, and who waits for an answer of each."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from clickhouse_connect.driver.client import Client

from analytics_service.config.settings import Settings
from analytics_service.errors import Busy, ServerAway
from analytics_service.market.share import Share, in_thread
from analytics_service.store.reach import unreachable
from analytics_service.store.server import address_of

_T = TypeVar("_T")
# Seconds by which a server may answer a ping later than one that is asked after it.
_MOMENT = 0.5
# Seconds for which a server that was lost must answer until it is preferred again.
_TRUST_SECONDS = 30.0
# Seconds after which who waits for an answer has the servers watched.
_GLANCE = 1.0
# Seconds after which an answer to a ping does not say that queries are answered, too.
_DOUBT_SECONDS = 3.0


class Endpoint:
    """A server, its client once it has been reached, and who waits for its answers."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # On the monotonic clock: when it answered a query and a ping last, and when it was lost; 0 while it is trusted.
        self.answered_at = self.pinged_at = self.lost_at = 0.0
        self.answers = True
        """Whether it answered last."""
        self._waiting: set[Future[Any]] = set()
        self._clients: dict[str, Client] = {}
        self._connecting: Share[Client] = Share(self._clients)

    @property
    def url(self) -> str:
        """Its address, for messages."""
        return address_of(self.settings)

    def client(self, make: Callable[[], Client]) -> Client:
        """Its client, which is made unless there is one."""
        return self._connecting.get("client", make)

    def forget(self) -> None:
        """Have the next use make sure that the server answers. Connections in use stay open."""
        while self._clients:
            _, client = self._clients.popitem()
            # The client does not close the connections of a pool that it did not create. A stopping server waits for
            # them.
            client.close_connections()
            client.close()

    @property
    def is_in_doubt(self) -> bool:
        """Whether it has answered no query lately."""
        return time.monotonic() - self.answered_at > _DOUBT_SECONDS

    def ask(self, call: Callable[[], _T], ends_at: float, watch: Callable[[], None]) -> _T:
        """The result of a call that waits for the server. TimeoutError when it takes longer, ServerAway as soon as the
        server is lost. `watch` is called now and then meanwhile.

        A time-out of a socket bounds neither the resolution of a name nor an answer that comes byte by byte, and
        nothing else may end it.
        """
        answer = in_thread(call)
        self._waiting.add(answer)
        try:
            while not wait([answer], max(min(ends_at - time.monotonic(), _GLANCE), 0)).done:
                if time.monotonic() >= ends_at:
                    raise TimeoutError
                watch()
            result = answer.result()
        finally:
            self._waiting.discard(answer)
        self.answered_at = time.monotonic()
        return result

    def release(self, cause: str) -> None:
        """Tell all who wait for an answer that none will come."""
        for answer in self._waiting.copy():
            with suppress(InvalidStateError):
                answer.set_exception(ServerAway(cause))


class Failover:
    """The servers of settings, in the order in which they are asked: that of the settings, but those that were lost
    come last, until they have answered for a while."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        urls: list[str | None] = [*settings.clickhouse_urls] or [None]
        self._endpoints = [Endpoint(replace(settings, clickhouse_url=url)) for url in urls]
        self._clock = clock

    @property
    def has_several(self) -> bool:
        """Whether there is another server to ask."""
        return len(self._endpoints) > 1

    @property
    def has_lost_any(self) -> bool:
        """Whether a server is to be preferred again once it answers."""
        return any(endpoint.lost_at for endpoint in self._endpoints)

    @property
    def answering(self) -> Mapping[str, bool]:
        """Whether each server answers, by URL, in the order of the settings."""
        return {endpoint.url: endpoint.answers for endpoint in self._endpoints}

    def candidates(self) -> Sequence[Endpoint]:
        """The servers in the order in which to ask them: never none."""
        return sorted(self._endpoints, key=lambda endpoint: endpoint.lost_at)

    def lose(self, endpoint: Endpoint) -> bool:
        """Ask a server last. Whether it was trusted before."""
        was_trusted = not endpoint.lost_at
        endpoint.lost_at, endpoint.answers = self._clock(), False
        return was_trusted

    def note(self, endpoint: Endpoint, *, answers: bool) -> None:
        """Take note of whether a server has answered a ping."""
        endpoint.answers = answers
        if not answers:
            endpoint.lost_at = endpoint.lost_at and self._clock()
        elif self._clock() - endpoint.lost_at > _TRUST_SECONDS:
            endpoint.lost_at = 0.0


def first_answer(
    servers: Sequence[Endpoint], pings: Sequence[Future[None]], begun: float, seconds: float
) -> int | None:
    """The index of the first server that answers within a moment; if none does, within so many seconds."""
    soon = begun + _MOMENT
    for ends in (soon, begun + seconds):
        for index, (server, pinged) in enumerate(zip(servers, pings, strict=True)):
            wait([pinged], max(ends - time.monotonic(), 0))
            # On a busy machine another answer may come first, and in the end a short one will do.
            answered_at = server.answered_at if ends == soon else max(server.answered_at, server.pinged_at)
            if (pinged.done() and not pinged.exception()) or answered_at >= begun:
                return index
    return None


def fault_of(server: Endpoint, pinged: Future[None]) -> BaseException:
    """Why a server does not answer a ping."""
    error = pinged.exception() if pinged.done() else None
    return unreachable(server.url, "it does not answer") if error is None or isinstance(error, Busy) else error
