"""Base of paths that show snapshots: rendered once for each state and question, then served as bytes."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import falcon

from analytics_service.history.large_pages import LargePages
from analytics_service.http.answer import Answer, Headers, Validators, lists_tag, send, tag_of
from analytics_service.http.answers import Answers, CacheKey
from analytics_service.http.coding import IDENTITY, Coding, negotiate
from analytics_service.http.resource import Resource
from analytics_service.market.instants import unix_second
from analytics_service.state.view import State, View, Views

_T = TypeVar("_T")
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

    def due(self, state: State) -> int:
        """When the next snapshot of any of the families is expected, unix seconds; 0 when none is.

        An import may bring observations of the near future; they say nothing about when jobs run.
        """
        heads = [newest for head in state if (newest := head.present) is not None]
        if any(head.at > self.now() for head in heads):
            return 0
        every = self._intervals()
        return min((head.at + every[head.family] for head in heads if head.family in every), default=0)

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
    """What all paths that show snapshots have in common. `zone` is that of times for which a request names none."""

    views: Views
    answers: Answers
    schedule: Schedule
    large_pages: LargePages
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
                answer = self.of_view(given, lambda view: self._new(req, key, given, view))
        send(req, resp, answer, self._shared.schedule.cache_control(answer.validators, is_moving=is_moving))

    def _kept(self, key: CacheKey) -> Answer | None:
        """The answer that is kept, if it is what readers are shown now."""
        answer = self._shared.answers.find(key)
        return answer if answer is not None and self._shared.views.shows(answer.validators.state) else None

    @abstractmethod
    def body(self, view: View, given: Mapping[str, Any]) -> bytes:
        """The body for a view. EntityNotFound when the parameters name nothing."""

    def question(self, given: Mapping[str, Any]) -> tuple[str | None, bool]:
        """The resolved query to cache the answer under (None: the request's own), and whether that changes with time.

        Requests with the same resolved query have the same answer.
        """
        return None, False

    def described_by(self, view: View, given: Mapping[str, Any]) -> tuple[str, ...]:
        """Further families on which the answer depends without showing their snapshots."""
        return ()

    def of_view(self, given: Mapping[str, Any], act: Callable[[View], _T]) -> _T:
        """What `act` returns for the view that the parameters ask for."""
        return self._shared.views.of_newest(act)

    def next(self, given: Mapping[str, Any]) -> str | None:
        """Path and query of the next page, if there is one."""
        return None

    def turn(self, view: View, given: Mapping[str, Any]) -> AbstractContextManager[None]:
        """A context in which the answer is rendered and encoded. By default it does not wait."""
        return nullcontext()

    def made_from(self, view: View, given: Mapping[str, Any]) -> tuple[str, ...]:
        """The families that the answer is made from. Descriptions of assets, which come with prices, do not count."""
        sums = view.sums_valued_by if self.has_sums and given.get("shape", "newer") == "newer" else ()
        values = self.valued_by if given.get("with_value") else ()
        return tuple(dict.fromkeys((*self.families, *sums, *values)))

    def as_of(self, view: View, given: Mapping[str, Any]) -> dict[str, int]:
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

    def _new(self, req: falcon.Request, key: CacheKey, given: Mapping[str, Any], view: View) -> Answer:
        state = view.state(dict.fromkeys((*self.made_from(view, given), *self.described_by(view, given))))
        known = self._shared.answers.validators(key, state)
        if known is not None and lists_tag(req.get_header("If-None-Match"), known.etag(key.coding)):
            return Answer(known, key.coding)
        with self.turn(view, given):
            return self._made(key, given, view, state)

    def _made(self, key: CacheKey, given: Mapping[str, Any], view: View, state: State) -> Answer:
        def make() -> Answer:
            headers = self.content_headers(given)
            if key.coding != IDENTITY:
                plain = self._made(key.uncoded, given, view, state)
                return Answer(plain.validators, key.coding, plain.body, headers)
            body = self.body(view, given)
            return Answer(self._validators(body, given, view, state), IDENTITY, body, headers)

        return self._shared.answers.get(key, state, make)

    def _validators(self, body: bytes, given: Mapping[str, Any], view: View, state: State) -> Validators:
        as_of, schedule = self.as_of(view, given), self._shared.schedule
        return Validators(
            tag=tag_of(body),
            state=state,
            as_of=tuple(sorted(as_of.items())),
            modified=min(max(as_of.values()), schedule.now()) if as_of else None,
            due=schedule.due(view.state(self.made_from(view, given))),
            closes_at=self.closes_at(view, given),
            next=self.next(given),
            vary="Accept, Accept-Encoding" if len(self.media) > 1 else "Accept-Encoding",
        )
