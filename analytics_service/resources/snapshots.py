"""Base class of paths that show snapshots. An answer is rendered once for each state and query, then cached."""

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import falcon

from analytics_service.concurrency import QuerySlots
from analytics_service.errors import BeingCorrected, Busy, Superseded
from analytics_service.history.formats.base import Format
from analytics_service.http.answer import Answer, Coding, Headers, Validators, etag_of, negotiate, send
from analytics_service.http.answer_cache import AnswerCache, CacheKey
from analytics_service.http.resource import Resource
from analytics_service.market.instants import unix_second
from analytics_service.state.view import View, Views
from analytics_service.store.ledger import Head

Arguments = Mapping[str, Any]
# Answers that depend on `now` change every second.
_MOVING = "public, max-age=1"
# A closed answer changes only through corrections and, in histories, when assets are listed or renamed: a page has all
# present assets and symbols. Clients see such changes within a day.
_CLOSED = "public, max-age=86400"
# For how long after an instant or a rewrite jobs may still write the snapshot, or rewrite more.
_SETTLING_SECONDS = 600


class Schedule:
    """Due times of snapshots. `intervals` returns the seconds between snapshots of each scheduled dataset, and
    `is_filling` whether the past is still being filled in."""

    def __init__(
        self,
        intervals: Callable[[], Mapping[str, int]],
        clock: Callable[[], datetime],
        is_filling: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_filling = is_filling
        self._intervals = intervals
        self._clock = clock

    def due(self, heads: tuple[Head, ...]) -> int:
        """The unix second at which the next snapshot of any dataset is expected; 0 if none is.

        0 also with observations of the future, which an import may bring: they do not show when jobs run.
        """
        newest = [newest for head in heads if (newest := head.newest_while_open) is not None]
        if any(head.at > self.now() for head in newest):
            return 0
        intervals = self._intervals()
        return min((head.at + intervals[head.dataset] for head in newest if head.dataset in intervals), default=0)

    def now(self) -> int:
        return unix_second(self._clock())

    def cache_control(self, validators: Validators, *, is_moving: bool = False) -> str:
        """A day for a closed answer, else until the next snapshot is due. One second if none is due, if it is late, if
        the answer depends on now (`is_moving`), or while the past is being filled in."""
        if is_moving or self._is_filling():
            return _MOVING
        now = self._clock().timestamp()
        if validators.closes_at is not None and now >= validators.closes_at:
            return _CLOSED
        left = validators.due - now
        return f"public, max-age={int(left) if left > 0 else 1}"


@dataclass(frozen=True, slots=True)
class Resolved:
    """The meaning of a request for any state of the data.

    The answer is cached under `query`; None means the request's own query. `is_moving` means that the answer depends on
    now. `next` returns the reference to the page after a record, if there is one. `headers` describe the body; a body
    that `is_packed` is sent without a coding, which would save nothing.
    """

    query: str | None = None
    is_moving: bool = False
    next: Callable[[Any], str | None] = lambda record: None
    headers: Headers = ()
    is_packed: bool = False


def file_headers(form: Format, *names: object) -> Headers:
    """The headers of a file, with its name made from `names`. A prefix of bech32 may have any character."""
    name = re.sub(r"[^\w-]", "_", "-".join(str(name) for name in names if name))
    disposition = f'attachment; filename="{name}.{form.suffix}"'
    return ("Content-Type", form.content_type), ("Content-Disposition", disposition)


@dataclass(frozen=True, slots=True)
class SharedState:
    """Collaborators of all paths that show snapshots. `zone` is the default zone of requests. `large_pages` limits
    large pages of history (rule 2.13, large pages), `moments` states of the past, so that the newest state waits for
    few of them (rule 8.9, query slots). Jobs may change answers made from events for `events_lateness` seconds."""

    views: Views
    answers: AnswerCache
    schedule: Schedule
    large_pages: QuerySlots
    moments: QuerySlots
    zone: ZoneInfo = ZoneInfo("UTC")
    events_lateness: int = 0


class SnapshotPath(Resource):
    """A path whose answer changes only with the snapshots of its datasets."""

    datasets: tuple[str, ...]
    """The datasets that the answer shows, except for USD values; the main dataset first."""
    has_sums = False
    """Whether the answer shows USD sums over markets, except in the older shape."""
    valued_by: tuple[str, ...] = ("prices",)
    """The datasets behind USD values."""

    def __init__(self, shared: SharedState) -> None:
        self._shared = shared

    def respond(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Send the cached answer, or a new one if there is a newer state. Each coding is cached separately."""
        key = CacheKey(req.path, req.query_string, negotiate(req.get_header("Accept-Encoding")), req.context.media)
        answer, resolved = self._cached(key), Resolved()
        req.context.cache = "hit"
        if answer is None:
            arguments = self.parse(req, path)
            resolved, original = self.resolve(req, arguments), key
            key = key._replace(
                query=key.query if resolved.query is None else resolved.query,
                coding=Coding.IDENTITY if resolved.is_packed else key.coding,
            )
            if key != original:
                answer = self._cached(key)
            if answer is None:
                req.context.cache = "miss"
                answer = self._answer(key, arguments, resolved)
        send(req, resp, answer, self._shared.schedule.cache_control(answer.validators, is_moving=resolved.is_moving))

    def _cached(self, key: CacheKey) -> Answer | None:
        """The cached answer, if its state is still shown to readers."""
        answer = self._shared.answers.find(key)
        return answer if answer is not None and self._shared.views.shows(answer.validators.state) else None

    def _answer(self, key: CacheKey, arguments: Arguments, resolved: Resolved) -> Answer:
        """The answer for the requested view, cached or new. If a rewrite supersedes the view, waits for the next view.
        Raises BeingCorrected if the deadline passes first."""
        superseded: Superseded | None = None
        while True:
            try:
                view = self.view(arguments)
                datasets = (*self.made_from(view, arguments), *self.described_by(view, arguments))
                heads = view.heads_of(dict.fromkeys(datasets))
                render = partial(self._render, arguments, resolved, view, heads)
                return self._shared.answers.rendered(key, heads, render)
            except Superseded as error:
                superseded = error
                self._shared.views.wait_for_rewrite()
            except Busy:
                if superseded is None:
                    raise
                raise BeingCorrected from superseded

    def _render(self, arguments: Arguments, resolved: Resolved, view: View, heads: tuple[Head, ...]) -> Answer:
        self.require_kept(view, arguments, [head.dataset for head in heads])
        schedule, record = self._shared.schedule, self.record(view, arguments)
        body, as_of = self.body(record, view, arguments), self.as_of(record, view, arguments)
        validators = Validators(
            tag=etag_of(body),
            state=heads,
            as_of=tuple(sorted(as_of.items())),
            modified=min(max(*as_of.values(), self._rewritten_at(heads)), schedule.now()) if as_of else None,
            due=schedule.due(view.heads_of(self.made_from(view, arguments))),
            closes_at=self._closes_at(view, arguments, heads),
            next=resolved.next(record),
            begins=self.begins(record),
            vary="Accept, Accept-Encoding" if len(self.media) > 1 else "Accept-Encoding",
        )
        return Answer(validators, Coding.IDENTITY, body, resolved.headers)

    def made_from(self, view: View, arguments: Arguments) -> tuple[str, ...]:
        """The datasets behind the answer, except for descriptions of assets, which come with prices."""
        sums = view.sums_valued_by if self.has_sums and arguments.get("shape", "newer") == "newer" else ()
        values = self.valued_by if arguments.get("with_value") else ()
        own = self.datasets
        if "ptoken" in own[1:] and not view.has_token:
            own = tuple(dataset for dataset in own if dataset != "ptoken")
        return tuple(dict.fromkeys((*own, *sums, *values)))

    def resolve(self, req: falcon.Request, arguments: Arguments) -> Resolved:
        return Resolved()

    def view(self, arguments: Arguments) -> View:
        return self._shared.views.newest()

    @abstractmethod
    def record(self, view: View, arguments: Arguments) -> Any:
        """The part of a view that the answer shows. Raises EntityNotFound if the parameters name nothing."""

    @abstractmethod
    def require_kept(self, view: View, arguments: Arguments, datasets: Sequence[str]) -> None:
        """Raises Lost if the store has lost rows of these datasets that the answer needs (rule 8.19, losses)."""

    @abstractmethod
    def body(self, record: Any, view: View, arguments: Arguments) -> bytes: ...

    def described_by(self, view: View, arguments: Arguments) -> tuple[str, ...]:
        """Datasets that the answer depends on without showing their snapshots."""
        return ()

    def as_of(self, record: Any, view: View, arguments: Arguments) -> dict[str, int]:
        """Unix seconds of each dataset's snapshot in the answer (rule 7.1, validators)."""
        return {dataset: view.head(dataset).at for dataset in self.made_from(view, arguments)}

    def begins(self, record: Any) -> int | None:
        """The first instant of a history's series, unix seconds; None for other answers."""
        return None

    def settled_at(self, at: int) -> int:
        """The unix second from which jobs no longer change an answer as of `at`."""
        return at + _SETTLING_SECONDS + (self._shared.events_lateness if "loans" in self.datasets else 0)

    def _closes_at(self, view: View, arguments: Arguments, heads: tuple[Head, ...]) -> int | None:
        """As `closes_at`, but some time after the last rewrite: during a backfill, others follow soon."""
        closes_at = self.closes_at(view, arguments)
        return None if closes_at is None else max(closes_at, self._rewritten_at(heads) + _SETTLING_SECONDS)

    def _rewritten_at(self, heads: tuple[Head, ...]) -> int:
        """The unix second of the last rewrite of any dataset; 0 without one."""
        rewritten = self._shared.views.newest().heads.rewritten
        return max((rewritten.get(head.dataset, 0) for head in heads), default=0)

    def closes_at(self, view: View, arguments: Arguments) -> int | None:
        """The unix second from which no snapshot will change the answer; None if any later snapshot may."""
        return None
