"""Base of paths that show snapshots: rendered once for each state and question, then served as bytes."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import Semaphore
from typing import Any
from zoneinfo import ZoneInfo

import falcon

from analytics_service.errors import Superseded
from analytics_service.http.answer import Answer, Headers, Validators, lists_tag, send, tag_of
from analytics_service.http.answers import Answers, CacheKey
from analytics_service.http.coding import IDENTITY, Coding, negotiate
from analytics_service.http.resource import Resource
from analytics_service.market.instants import unix_second
from analytics_service.state.view import View, Views
from analytics_service.store.ledger import Head

# Answers to `now` change with every second.
_MOVING = "public, max-age=1"
# What is closed changes only through corrections of the past and, in histories, when assets are listed or renamed:
# a page has all assets that exist now, by their present symbols. Clients see this within a day.
_CLOSED = "public, max-age=86400"
# Jobs still write the snapshots of the last few minutes.
LATE = 600


class Schedule:
    """When snapshots are due. `intervals` tells the seconds between those of each scheduled family."""

    def __init__(self, intervals: Callable[[], Mapping[str, int]], clock: Callable[[], datetime]) -> None:
        self._intervals = intervals
        self._clock = clock

    def due(self, heads: tuple[Head, ...]) -> int:
        """When the next snapshot of any of the families is expected, unix seconds; 0 when none is.

        An import may bring observations of the near future; they say nothing about when jobs run.
        """
        newest = [present for head in heads if (present := head.present) is not None]
        if any(head.at > self.now() for head in newest):
            return 0
        every = self._intervals()
        return min((head.at + every[head.family] for head in newest if head.family in every), default=0)

    def now(self) -> int:
        """The unix second of now."""
        return unix_second(self._clock())

    def cache_control(self, validators: Validators, *, is_moving: bool = False) -> str:
        """A day for a closed answer, else until the next snapshot is due. One second if none is due, if it is late, or
        if the same request will then mean something else."""
        if is_moving:
            return _MOVING
        now = self._clock().timestamp()
        if validators.closes_at is not None and now >= validators.closes_at:
            return _CLOSED
        left = validators.due - now
        return f"public, max-age={int(left) if left > 0 else 1}"


@dataclass(frozen=True, slots=True)
class Shared:
    """What all paths that show snapshots have in common. `zone` is that of times for which a request names none, and
    `large_pages` has a permit for each large page of history that may be made at once (rule 2.13)."""

    views: Views
    answers: Answers
    schedule: Schedule
    large_pages: Semaphore
    zone: ZoneInfo = ZoneInfo("UTC")


class SnapshotPath(Resource):
    """A path whose answer changes with the snapshots of some families, and with nothing else."""

    families: tuple[str, ...]
    """The families that the answer shows, except for USD values."""
    has_sums = False
    """Whether the answer shows USD sums over markets, unless it has the older of two shapes."""
    valued_by: tuple[str, ...] = ("prices",)
    """The families that USD values are made from."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def respond(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Send the cached answer, unless there is a newer state.

        If the meaning of a query changes with time, as with `now`, the answer is cached under the resolved query
        instead of the one that was sent; and always under the coding that it is sent in.
        """
        key = CacheKey(req.path, req.query_string, negotiate(req.get_header("Accept-Encoding")), req.context.media)
        answer, is_moving = self._kept(key), False
        req.context.cache = "hit"
        if answer is None:
            given = self.given(req, path)
            question, is_moving = self.question(given)
            asked = key
            key = key._replace(query=key.query if question is None else question, coding=self.coding(key, given))
            if key != asked:
                answer = self._kept(key)
            if answer is None:
                req.context.cache = "miss"
                answer = self._answer(req, key, given)
        send(req, resp, answer, self._shared.schedule.cache_control(answer.validators, is_moving=is_moving))

    def _kept(self, key: CacheKey) -> Answer | None:
        """The answer that is kept, if it is what readers are shown now."""
        answer = self._shared.answers.find(key)
        return answer if answer is not None and self._shared.views.shows(answer.validators.state) else None

    def _answer(self, req: falcon.Request, key: CacheKey, given: Mapping[str, Any]) -> Answer:
        """The answer for the newest view that the parameters ask for; for a newer one when what it reads was rewritten
        meanwhile."""
        views = self._shared.views
        with views.request():
            deadline = views.deadline()
            while True:
                try:
                    return self._of_view(req, key, given, self.view(given))
                except Superseded:
                    views.wait_for_rewrite(deadline)

    def _of_view(self, req: falcon.Request, key: CacheKey, given: Mapping[str, Any], view: View) -> Answer:
        """The answer for a view: the one that is kept, or a new one; none but its validators if the caller has it."""
        answers = self._shared.answers
        heads = view.heads_of(dict.fromkeys((*self.made_from(view, given), *self.described_by(view, given))))
        known = answers.validators(key, heads)
        if known is not None and lists_tag(req.get_header("If-None-Match"), known.etag(key.coding)):
            return Answer(known, key.coding)
        with answers.alone(key.uncoded):
            if (kept := answers.of_state(key, heads)) is not None:
                return kept
            plain = answers.of_state(key.uncoded, heads)
            if plain is None:
                plain = answers.keep(key.uncoded, self._plain(given, view, heads))
            if key.coding == IDENTITY:
                return plain
            return answers.keep(key, Answer(plain.validators, key.coding, plain.body, self.content_headers(given)))

    def _plain(self, given: Mapping[str, Any], view: View, heads: tuple[Head, ...]) -> Answer:
        """A new answer without a coding."""
        schedule, record = self._shared.schedule, self.record(view, given)
        body, as_of = self.body(record, view, given), self.as_of(record, view, given)
        validators = Validators(
            tag=tag_of(body),
            state=heads,
            as_of=tuple(sorted(as_of.items())),
            modified=min(max(as_of.values()), schedule.now()) if as_of else None,
            due=schedule.due(view.heads_of(self.made_from(view, given))),
            closes_at=self.closes_at(view, given),
            next=self.next(given),
            vary="Accept, Accept-Encoding" if len(self.media) > 1 else "Accept-Encoding",
        )
        return Answer(validators, IDENTITY, body, self.content_headers(given))

    def view(self, given: Mapping[str, Any]) -> View:
        """The view that the parameters ask for."""
        return self._shared.views.newest()

    @abstractmethod
    def record(self, view: View, given: Mapping[str, Any]) -> Any:
        """What the answer shows of a view. EntityNotFound when the parameters name nothing."""

    @abstractmethod
    def body(self, record: Any, view: View, given: Mapping[str, Any]) -> bytes:
        """The body that shows a record."""

    def question(self, given: Mapping[str, Any]) -> tuple[str | None, bool]:
        """The resolved query to cache the answer under (None: the request's own), and whether that changes with time.

        Requests with the same resolved query have the same answer.
        """
        return None, False

    def described_by(self, view: View, given: Mapping[str, Any]) -> tuple[str, ...]:
        """Further families on which the answer depends without showing their snapshots."""
        return ()

    def next(self, given: Mapping[str, Any]) -> str | None:
        """Path and query of the next page, if there is one."""
        return None

    def made_from(self, view: View, given: Mapping[str, Any]) -> tuple[str, ...]:
        """The families that the answer is made from. Descriptions of assets, which come with prices, do not count."""
        sums = view.sums_valued_by if self.has_sums and given.get("shape", "newer") == "newer" else ()
        values = self.valued_by if given.get("with_value") else ()
        return tuple(dict.fromkeys((*self.families, *sums, *values)))

    def as_of(self, record: Any, view: View, given: Mapping[str, Any]) -> dict[str, int]:
        """The instant of the snapshot of each family that the answer shows, unix seconds (rule 7.1)."""
        return {family: view.head(family).at for family in self.made_from(view, given)}

    def content_headers(self, given: Mapping[str, Any]) -> Headers:
        """Headers of the body; by default it is JSON."""
        return ()

    def coding(self, key: CacheKey, given: Mapping[str, Any]) -> Coding:
        """The coding of the body: the one that the caller prefers."""
        return key.coding

    def closes_at(self, view: View, given: Mapping[str, Any]) -> int | None:
        """The unix second from which no later snapshot will change the answer; None if there may be one any time."""
        return None
