"""Base of paths that show snapshots: rendered once for each state and question, then served as bytes."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import falcon

from analytics_service.http.answer import Answer, Validators, lists_tag, send, tag_of
from analytics_service.http.answers import Answers, CacheKey
from analytics_service.http.coding import IDENTITY, negotiate
from analytics_service.http.resource import Resource
from analytics_service.state.view import State, View, Views

# Closed time changes only through imports of corrected history. Clients see these within a day.
_CLOSED = "public, max-age=86400"


class Schedule:
    """When snapshots are due. `every` is the interval of each scheduled family, seconds; empty without jobs."""

    def __init__(self, every: Mapping[str, int], clock: Callable[[], datetime]) -> None:
        self._every = every
        self._clock = clock

    def due(self, state: State) -> int:
        """When the next snapshot of any of the families is expected, unix seconds; 0 when none is.

        An import may bring observations of the near future; they say nothing about when jobs run.
        """
        if any(head.at > self.now() for head in state):
            return 0
        return min((head.at + self._every[head.family] for head in state if head.family in self._every), default=0)

    def now(self) -> int:
        """The unix second of now."""
        return int(self._clock().timestamp())

    def cache_control(self, validators: Validators) -> str:
        """An age that ends when the next snapshot is due; a second when none is or it is late."""
        if validators.closed:
            return _CLOSED
        left = validators.due - self._clock().timestamp()
        return f"public, max-age={int(left) if left > 0 else 1}"


@dataclass(frozen=True, slots=True)
class Shared:
    """What all paths that show snapshots have in common."""

    views: Views
    answers: Answers
    schedule: Schedule


class SnapshotPath(Resource):
    """A path whose answer changes with the snapshots of some families, and with nothing else."""

    families: tuple[str, ...]

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def on_get(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """The answer that is kept, unless there is a newer state."""
        key = CacheKey(req.path, req.query_string, negotiate(req.get_header("Accept-Encoding")))
        answer = self._shared.answers.find(key)
        if answer is None or not self._shared.views.shows(answer.validators.state):
            given = self.given(req, path)
            answer = self._shared.views.of_newest(lambda view: self._new(req, key, given, view))
        send(req, resp, answer, self._shared.schedule.cache_control(answer.validators))

    @abstractmethod
    def body(self, view: View, given: Mapping[str, Any]) -> bytes:
        """The body for a view. EntityNotFound when the parameters name nothing."""

    def is_closed(self, view: View, given: Mapping[str, Any]) -> bool:
        """Whether no later snapshot will change the answer."""
        return False

    def _new(self, req: falcon.Request, key: CacheKey, given: Mapping[str, Any], view: View) -> Answer:
        state = view.state(self.families)
        validators = Validators(
            tag=tag_of((req.uri_template, *given.values(), state)),
            state=state,
            at=min(max(head.at for head in state), self._shared.schedule.now()),
            due=self._shared.schedule.due(state),
            closed=self.is_closed(view, given),
        )
        if lists_tag(req.get_header("If-None-Match"), validators.etag(key.coding)):
            return Answer(validators, key.coding)
        return self._made(key, validators, lambda: self.body(view, given))

    def _made(self, key: CacheKey, validators: Validators, render: Callable[[], bytes]) -> Answer:
        def make() -> Answer:
            body = render() if key.coding == IDENTITY else self._made(key.uncoded, validators, render).body
            return Answer(validators, key.coding, body)

        return self._shared.answers.get(key, validators.state, make)
