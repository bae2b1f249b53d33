"""Upstream's state as of an instant, from one of its snapshots.

Requests of current-state paths have `at`, an extension: so a snapshot equals upstream's snapshot of the instant, even
if it is taken late, and both have equal histories. If upstream refuses `at`, because it lacks the extension or its
clock is behind, the newest state replaces the state of a recent instant.
"""

from datetime import datetime, timedelta

from analytics_service.errors import SourceError
from analytics_service.market.instants import format_instant, from_unix, unix_second
from analytics_service.sources.upstream.client import NO_SNAPSHOT, Client, Refused, UpstreamAnswer
from analytics_service.sources.upstream.fields import AnswerField

# The newest state may replace the state of an instant at most this old.
_RECENT = timedelta(minutes=5)
# Seconds between checks whether upstream has completed its snapshot: its jobs start at the same second as ours.
CATCH_UP = (1.0, 2.0, 4.0)


class UpstreamState:
    """The state of a dataset as of an instant. All answers come from one `snapshot`, if upstream names it."""

    def __init__(self, client: Client, dataset: str, at: datetime, now: datetime) -> None:
        self.is_recent = now - at <= _RECENT
        self._client = client
        self._dataset = dataset
        self._at = unix_second(at)
        self._pauses = iter(CATCH_UP if self.is_recent else ())
        self._snapshot: int | None = None

    @property
    def snapshot(self) -> datetime:
        """The instant of upstream's snapshot; the requested instant if upstream does not say."""
        return from_unix(self._at if self._snapshot is None else self._snapshot)

    def get(self, path: str, **params: str | int) -> AnswerField:
        """The payload of a path. The first call waits some seconds for upstream's snapshot of the instant. SourceError
        if upstream has completed another snapshot since, and for a list whose count does not match."""
        answer = self._ask(path, params)
        while answer.as_of.get(self._dataset, self._at) < self._at and (pause := next(self._pauses, None)):
            self._client.pause(pause)
            answer = self._ask(path, params)
        self._pauses = iter(())
        if not self.is_recent and not answer.as_of:
            message = f"{self._client.url} has no past of {self._dataset}: it does not support `at`."
            raise Refused(message, 404, NO_SNAPSHOT)
        snapshot = answer.as_of.get(self._dataset, self._snapshot)
        if self._snapshot not in (None, snapshot):
            late = f"as of {format_instant(from_unix(self._at))}"
            raise SourceError(
                f"{self._client.url} has completed a snapshot of {self._dataset} while it was read {late}."
            )
        self._snapshot = snapshot
        if answer.count is not None and answer.count.whole() != len(answer.data.items()):
            raise answer.count.error("must be the number of items")
        return answer.data

    def _ask(self, path: str, params: dict[str, str | int]) -> UpstreamAnswer:
        try:
            return self._client.get(path, **params, at=self._at)
        except Refused as error:
            if error.status != 400 or not self.is_recent:
                raise
            return self._client.get(path, **params)
