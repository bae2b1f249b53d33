"""Base class of paths that show snapshots. An answer is rendered once for each state and query, then cached."""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import falcon

from analytics_service.concurrency import QuerySlots
from analytics_service.errors import BeingCorrected, Busy, Superseded
from analytics_service.history.formats.base import Format
from analytics_service.http.answer import Answer, Headers, Validators, etag_of, send
from analytics_service.http.answer_cache import AnswerCache, CacheKey
from analytics_service.http.resource import Resource
from analytics_service.market.instants import unix_second
from analytics_service.state.view import View, Views
from analytics_service.store.datasets.assets import ASSETS_DATASET
from analytics_service.store.datasets.histories import names_of
from analytics_service.store.ledger import Head
from analytics_service.store.losses import require_kept

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

    def due(self, heads: Iterable[Head]) -> int:
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
class Rendered:
    """A body, and what is known of its validators: not `tag`, `state`, `modified` and `vary`, and `closes_at` without
    rewrites. `headers` and `is_packed` describe the body: see Answer."""

    body: bytes
    validators: Validators
    headers: Headers = ()
    is_packed: bool = False


Datasets = Callable[[View], Sequence[str]]
Render = Callable[[View], Rendered]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for, in any state of the data.

    `datasets` names all that the answer depends on. `render` may raise EntityNotFound, if parameters name nothing, and
    Lost (rule 8.19, losses). `view` gives the requested view; None means the newest. The answer is cached under
    `query`; None means the request's own query. `is_moving` means that the answer depends on now. The answer waits for
    a slot of `slots`.
    """

    datasets: Datasets
    render: Render
    view: Callable[[], View] | None = None
    query: str | None = None
    is_moving: bool = False
    slots: QuerySlots | None = None


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


def require_states_kept(view: View, dataset: str, first: int, last: int) -> None:
    """Raises Lost if the store has lost rows of a dataset that states from `first` to `last` need (unix seconds, both
    included). Of observations, states have only prices and loans."""
    has_observations = dataset in (ASSETS_DATASET, "loans")
    lost = (loss for loss in view.losses(dataset) if has_observations or loss.what not in names_of(dataset))
    require_kept(lost, first, last + 1)


class SnapshotPath(Resource):
    """A path whose answer changes only with the snapshots of its datasets."""

    datasets: tuple[str, ...]
    """The datasets that the answer shows, except for USD values; the main dataset first."""

    def __init__(self, shared: SharedState) -> None:
        self._shared = shared

    @abstractmethod
    def ask(self, req: falcon.Request, path: Mapping[str, str]) -> Asked:
        """What a request asks for. Raises RequestError or ParameterInvalid for the first fault."""

    def respond(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Send the cached answer, or a new one if there is a newer state."""
        key = CacheKey(req.path, req.query_string, req.context.media)
        answer, is_moving = self._cached(key), False
        req.context.cache = "hit"
        if answer is None:
            asked = self.ask(req, path)
            is_moving = asked.is_moving
            if asked.query is not None:
                key = key._replace(query=asked.query)
                answer = self._cached(key)
            if answer is None:
                req.context.cache = "miss"
                with asked.slots.acquire() if asked.slots else nullcontext():
                    answer = self._answer(key, asked)
        send(req, resp, answer, self._shared.schedule.cache_control(answer.validators, is_moving=is_moving))

    def _cached(self, key: CacheKey) -> Answer | None:
        """The cached answer, if its state is still shown to readers."""
        answer = self._shared.answers.find(key)
        return answer if answer is not None and self._shared.views.shows(answer.validators.state) else None

    def _answer(self, key: CacheKey, asked: Asked) -> Answer:
        """The answer for the requested view, cached or new. If a rewrite supersedes the view, waits for the next view.
        Raises BeingCorrected if the deadline passes first."""
        superseded: Superseded | None = None
        while True:
            try:
                view = asked.view() if asked.view else self._shared.views.newest()
                heads = view.heads_of(dict.fromkeys(asked.datasets(view)))
                return self._shared.answers.rendered(key, heads, partial(self._render, asked, view, heads))
            except Superseded as error:
                superseded = error
                self._shared.views.wait_for_rewrite()
            except Busy:
                if superseded is None:
                    raise
                raise BeingCorrected from superseded

    def _render(self, asked: Asked, view: View, heads: tuple[Head, ...]) -> Answer:
        rendered = asked.render(view)
        known, rewritten_at = rendered.validators, self._rewritten_at(heads)
        newest = max(*known.as_of.values(), rewritten_at) if known.as_of else None
        validators = replace(
            known,
            tag=etag_of(rendered.body),
            state=heads,
            modified=None if newest is None else min(newest, self._shared.schedule.now()),
            # During a backfill, other rewrites follow soon.
            closes_at=None if known.closes_at is None else max(known.closes_at, rewritten_at + _SETTLING_SECONDS),
            vary="Accept, Accept-Encoding" if len(self.media) > 1 else "Accept-Encoding",
        )
        return Answer(validators, rendered.body, rendered.headers, is_packed=rendered.is_packed)

    def settled_at(self, at: int) -> int:
        """The unix second from which jobs no longer change an answer as of `at`."""
        return at + _SETTLING_SECONDS + (self._shared.events_lateness if "loans" in self.datasets else 0)

    def _rewritten_at(self, heads: tuple[Head, ...]) -> int:
        """The unix second of the last rewrite of any dataset; 0 without one."""
        rewritten = self._shared.views.newest().heads.rewritten
        return max((rewritten.get(head.dataset, 0) for head in heads), default=0)
