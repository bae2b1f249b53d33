"""When an answer is rendered, what its ETag depends on, and how long it may be cached."""

import gzip
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import falcon
import falcon.testing
import pytest

from analytics_service.concurrency import QuerySlots
from analytics_service.errors import Busy, EntityNotFound, Superseded
from analytics_service.history.candles import Fill
from analytics_service.history.grid import Period
from analytics_service.history.page import Query
from analytics_service.http import errors, params
from analytics_service.http.answer import Validators
from analytics_service.http.answer_cache import AnswerCache
from analytics_service.http.middleware import Middleware
from analytics_service.resources.snapshots import Asked, Rendered, Schedule, SharedState, SnapshotPath
from analytics_service.state.view import View, Views
from analytics_service.state.watcher import HeadWatcher
from analytics_service.store.ledger import Head
from tests.doubles import NOON, LedgerStore

DECODERS = {"identity": bytes, "gzip": gzip.decompress}
EVERY = {"prices": 60, "ptoken": 300}
ADDRESS = "0x" + "ab" * 20
PATH = f"/api/{ADDRESS}"


def ledger_store() -> LedgerStore:
    return LedgerStore("prices", "ptoken", "routes")


class Counted(SnapshotPath):
    """Answers with the number of times it has been rendered."""

    datasets = ("prices", "ptoken")
    path = (params.ADDRESS,)
    query = (params.WITH_TEXT, params.ASSET_IDS)
    rendered = 0

    def ask(self, req: falcon.Request, path: Mapping[str, str]) -> Asked:
        arguments = self.parse(req, path)

        def render(view: View) -> Rendered:
            body, heads = self.body(view, arguments), view.heads_of(self.datasets)
            as_of, due = {head.dataset: head.at for head in heads}, self._shared.schedule.due(heads)
            return Rendered(body, Validators(as_of=as_of, due=due))

        return Asked(lambda view: self.datasets, render)

    def body(self, view: View, arguments: Mapping[str, Any]) -> bytes:
        if arguments["asset_ids"] == ["token;none"]:
            raise EntityNotFound("there is none")
        self.rendered += 1
        return b'"%d"' % self.rendered + b" " * 2000


class Constant(Counted):
    """Answers with the same bytes in every state."""

    def body(self, view: View, arguments: Mapping[str, Any]) -> bytes:
        self.rendered += 1
        return f"{arguments['with_text']}".encode()


class Rewritten(Counted):
    """Is superseded, and then has no more time."""

    def body(self, view: View, arguments: Mapping[str, Any]) -> bytes:
        self.rendered += 1
        raise Superseded("prices was rewritten while it was read.") if self.rendered == 1 else Busy


class Plain(Counted):
    """Answers with its parameters and the state it sees."""

    def body(self, view: View, arguments: Mapping[str, Any]) -> bytes:
        return shown(view.heads.heads, arguments["address"], arguments["with_text"])


def shown(heads: Mapping[str, Head], address: str, with_text: bool) -> bytes:
    """The body; without text it is too short to be compressed."""
    state = [f"{head.dataset} {head.version}" for head in heads.values() if head.dataset in Plain.datasets]
    return f"{state} {address} {with_text}".encode() * (100 if with_text else 1)


class Service:
    """The path with a ledger of its own, as callers see it."""

    def __init__(self, ledger: LedgerStore | None = None, bound: int = 10**6, kind: type[Counted] = Counted) -> None:
        self.ledger = ledger or ledger_store()
        self.heads = HeadWatcher(self.ledger, interval=None)
        schedule = Schedule(lambda: EVERY, lambda: datetime.fromtimestamp(NOON + 12, UTC))
        self.path = kind(
            SharedState(Views(self.ledger, self.heads), AnswerCache(bound), schedule, QuerySlots(1), QuerySlots(1))
        )
        app = falcon.App(middleware=Middleware())
        errors.add_error_handlers(app)
        app.add_route("/api/{address}", self.path)
        self._client = falcon.testing.TestClient(app)

    def get(self, query: str = "", path: str = PATH, **headers: str) -> falcon.testing.Result:
        """An answer after a look at the ledger, so that it shows the newest state."""
        self.heads.look()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._client.simulate_get(path, query_string=query, headers=given)

    def etag(self, query: str = "") -> str:
        return str(self.get(query).headers["etag"])


def test_snapshots_of_other_datasets_change_nothing() -> None:
    service = Service()
    before = service.get()
    service.ledger.change("routes", version=2)
    assert (service.get().content, service.path.rendered) == (before.content, 1)


def test_the_etag_is_that_of_the_body_whatever_snapshots_came_in_between() -> None:
    service = Service(kind=Constant)
    first = service.etag()
    assert Service(bound=0, kind=Constant).etag() == first
    for version in (2, 3):
        service.ledger.change("prices", version=version)
        assert service.etag() == first
        assert service.get(If_None_Match=first).status_code == 304
    assert service.path.rendered == 3
    assert service.etag("with_text=true") != first


@pytest.mark.parametrize("field", [column.name for column in fields(Head) if column.name != "dataset"])
def test_an_answer_is_rendered_anew_when_any_field_of_a_head_changes(field: str) -> None:
    service = Service()
    before = service.etag()
    service.ledger.change("prices", **{field: 7})
    assert service.etag() != before


@pytest.mark.parametrize("bound", [20_000, 10**6])
def test_a_caller_that_revalidates_always_sees_the_newest_state(bound: int, draw: random.Random) -> None:
    """Random requests, with random tags of those seen before, between random snapshots of random datasets."""
    service = Service(bound=bound, kind=Plain)
    memory: dict[str, bytes] = {}
    statuses: Counter[int] = Counter()
    for step in range(800):
        if draw.random() < 0.1:
            service.ledger.change(draw.choice([*service.ledger.heads]), version=draw.randrange(1, 4))
        coding, address, with_text = draw.choice([*DECODERS]), f"0x{step % 2:040}", draw.random() < 0.5
        tags = draw.sample([*memory], min(len(memory), draw.randrange(20)))
        headers = {"Accept-Encoding": coding, "If-None-Match": ", ".join(tags)}
        answer = service.get(f"with_text={str(with_text).lower()}", f"/api/{address}", **headers)
        etag = answer.headers["etag"]
        if answer.status_code == 200:
            memory[etag] = DECODERS[answer.headers.get("content-encoding", "identity")](answer.content)
        else:
            assert etag in tags
        assert memory[etag] == shown(service.ledger.heads, address, with_text)
        statuses[answer.status_code] += 1
    assert min(statuses[200], statuses[304]) > 50


def test_as_of_has_the_instant_of_every_dataset_that_the_answer_is_made_from() -> None:
    service = Service(ledger_store().change("prices", at=NOON - 60).change("ptoken", at=NOON - 300))
    answer = service.get()
    assert answer.headers["as-of"] == f"prices=@{NOON - 60}, ptoken=@{NOON - 300}"
    assert answer.headers["last-modified"] == falcon.dt_to_http(datetime.fromtimestamp(NOON - 60, UTC))
    again = service.get(If_None_Match=answer.headers["etag"])
    assert (again.status_code, again.headers["as-of"]) == (304, answer.headers["as-of"])


def test_a_correction_that_takes_longer_than_a_request_is_said_to_be_one() -> None:
    answer = Service(kind=Rewritten).get()
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
    assert answer.json["error"]["message"].startswith("History is being corrected")


@pytest.mark.parametrize(
    ("now", "seconds"),
    [(0.5, 59), (59.0, 1), (59.5, 0), (60.0, 1), (10_000.0, 1)],
)
def test_max_age_ends_at_the_next_snapshot_and_is_a_second_when_that_is_late(now: float, seconds: int) -> None:
    schedule = Schedule(lambda: EVERY, lambda: datetime.fromtimestamp(NOON + now, UTC))
    validators = Validators(
        "tag", due=schedule.due((Head("ptoken", NOON, NOON, 1, 1), Head("prices", NOON, NOON, 1, 1)))
    )
    assert schedule.cache_control(validators) == f"public, max-age={seconds}"


@pytest.mark.parametrize(
    ("heads", "due"),
    [
        ({"prices": 1000, "ptoken": 700}, 1000),
        ({"ptoken": 700, "prices": 900}, 960),
        ({"routes": 1000, "prices": 1000}, 1060),
        # No job takes snapshots of routes here.
        ({"routes": 1000}, 0),
        # An import brought an observation from the future (now is 1000), which says nothing about when jobs run.
        ({"prices": 1001, "ptoken": 700}, 0),
    ],
)
def test_the_next_snapshot_of_any_dataset_is_due(heads: dict[str, int], due: int) -> None:
    schedule = Schedule(lambda: EVERY, lambda: datetime.fromtimestamp(1000, UTC))
    assert schedule.due(tuple(Head(dataset, at, at, 1, 1) for dataset, at in heads.items())) == due


def page(start: int, end: int, period: str, zone: str = "UTC", limit: int = 200, offset: int = 0) -> Query:
    return Query(start, end, Period(period), 1, ZoneInfo(zone), limit, offset, Fill.PREVIOUS, None)


# Midnight of the day before in UTC, seven in the evening of the day before that in New York.
DAY = NOON - 36 * 3600


@pytest.mark.parametrize(
    ("query", "closed"),
    [
        # Two hours before noon, to the second.
        (page(NOON - 7200, NOON - 1, "h"), True),
        (page(NOON - 7200, NOON, "h"), False),
        # Only the first page of the range, and only the second one.
        (page(NOON - 7200, NOON, "h", limit=2), True),
        (page(NOON - 7200, NOON, "h", limit=2, offset=2), False),
        # The bucket ends at midnight, but the range ends before.
        (page(DAY, NOON - 1, "d"), True),
        (page(DAY, NOON + 3600, "d"), False),
        # The second day of New York ends 7 hours before noon in UTC, the third one 17 hours after it.
        (page(DAY, NOON + 3600, "d", "America/New_York", limit=2), True),
        (page(DAY, NOON + 3600, "d", "America/New_York", limit=3), False),
        # These pages are empty.
        (page(NOON - 7200, NOON - 1, "h", offset=2), False),
        (page(NOON + 7200, NOON + 9000, "h"), False),
    ],
)
def test_a_page_is_closed_when_no_later_observation_can_be_on_it(query: Query, closed: bool) -> None:
    assert query.is_closed(NOON) is closed
