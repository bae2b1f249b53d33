"""Upstream's state as of an instant, from one of its snapshots.

Current-state paths are asked with `at`, an extension: so a snapshot of an instant is upstream's own of that instant,
even if it is taken late, and histories of both are equal. A deployment that does not take `at` is asked without it,
if the instant is a recent one.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from analytics_service.errors import SourceError
from analytics_service.market.instants import shown, unix_second
from analytics_service.sources.upstream.client import Client, Refused, UpstreamAnswer
from analytics_service.sources.upstream.fields import AnswerField

_T = TypeVar("_T")
# How old an instant may be for which the newest state of upstream stands in.
_RECENT = timedelta(minutes=5)
# Seconds between looks at whether upstream has completed its own snapshot of an instant: its jobs begin at the same
# second as ours.
CATCH_UP = (1.0, 2.0, 4.0)
# Seconds after which a family of upstream is not late, but stands still.
_STANDS_STILL = 600


class NoPast(SourceError):
    """Upstream does not tell its state as of an instant of the past."""


class State:
    """Reads families of a deployment as of instants."""

    def __init__(self, client: Client, now: Callable[[], datetime]) -> None:
        self.client = client
        self.takes_at = True
        self._now = now

    def is_recent(self, at: datetime) -> bool:
        """Whether upstream's newest state may stand for that of an instant."""
        return self._now() - at <= _RECENT

    def read(self, family: str, at: datetime, read: "Callable[[Asker], _T]") -> _T:
        """What `read` makes from answers that are all from the same snapshot. If upstream completes one meanwhile, it
        is called again."""
        for _ in range(3):
            asker = Asker(self, family, at)
            result = read(asker)
            if len(asker.snapshots) <= 1:
                return result
        raise SourceError(
            f"{self.client.url} completes snapshots of {family} faster than one can be read, as of {shown(at)}."
        )


class Asker:
    """Asks for the state of a family as of an instant. `snapshots` are those (unix s) that the answers are from."""

    def __init__(self, state: State, family: str, at: datetime) -> None:
        self.snapshots: set[int] = set()
        self.is_recent = state.is_recent(at)
        self.sends_at = state.takes_at or not self.is_recent
        self._state, self._client = state, state.client
        self._family = family
        self._at = unix_second(at)
        self._pauses = iter(CATCH_UP if self.is_recent else ())

    def get(self, path: str, **params: str | int) -> AnswerField:
        """The payload of a path. The first call waits some seconds for upstream's snapshot of the instant. SourceError
        for a list that has not as many items as it says."""
        answer = self._ask(path, params)
        while self._is_late(answer) and (pause := next(self._pauses, None)):
            self._client.pace.pause(pause)
            answer = self._ask(path, params)
        self._pauses = iter(())
        self.snapshots |= {answer.as_of[self._family]} if self._family in answer.as_of else set()
        if answer.count is not None and answer.count.whole() != len(items := answer.data.items()):
            raise answer.count.error(f"is not the number of items, {len(items)}")
        return answer.data

    def _is_late(self, answer: UpstreamAnswer) -> bool:
        return 0 < self._at - answer.as_of.get(self._family, self._at) <= _STANDS_STILL

    def _ask(self, path: str, params: dict[str, str | int]) -> UpstreamAnswer:
        if not self.sends_at:
            return self._client.get(path, **params)
        try:
            return self._client.get(path, **params, at=self._at)
        except Refused as error:
            if error.status == 404 and error.text.startswith("at:"):
                raise NoPast(str(error)) from error
            if error.status != 400:
                raise
            if not self.is_recent:
                raise NoPast(f"{self._client.url} tells no past of {self._family}: {error}") from error
            answer = self._client.get(path, **params)
            # A value that is refused, such as an instant ahead of upstream's clock, is no reason to ask without it.
            self._state.takes_at = self.sends_at = error.kind == "query_parameter_invalid"
            return answer
