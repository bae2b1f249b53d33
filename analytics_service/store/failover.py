"""Which of several servers with the same data is asked."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from analytics_service.config.settings import Settings

# Seconds for which a server that could not be reached is left out.
_AWAY_SECONDS = 30.0


class Failover:
    """The servers of settings, in order of preference. One that could not be reached is left out for a while, so that
    requests do not wait for it again and again; afterwards a single caller tries it."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        urls: list[str | None] = [*settings.clickhouse_urls] or [None]
        self._servers = [replace(settings, clickhouse_url=url) for url in urls]
        self._clock = clock
        # By URL: when to try it again.
        self._away_until: dict[str | None, float] = {}
        self._lock = threading.Lock()

    @property
    def has_several(self) -> bool:
        """Whether there is another server to ask."""
        return len(self._servers) > 1

    def candidates(self) -> Sequence[Settings]:
        """Settings that name one server each, in the order in which to try them: never none."""
        with self._lock:
            return [server for server in self._servers if self._is_due(server)] or self._servers

    def mark_away(self, server: Settings) -> None:
        """Leave a server out for a while."""
        self._away_until[server.clickhouse_url] = self._clock() + _AWAY_SECONDS

    def mark_reached(self, server: Settings) -> None:
        """Use a server again."""
        self._away_until.pop(server.clickhouse_url, None)

    def _is_due(self, server: Settings) -> bool:
        until = self._away_until.get(server.clickhouse_url)
        if until is None:
            return True
        if self._clock() < until:
            return False
        self.mark_away(server)
        return True
