"""State as of a moment: what was answered then is answered again, whatever came later (rule 8.11)."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.config import Settings
from analytics_service.market.instants import instant
from analytics_service.market.positions import Position
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.state.heads import Heads
from analytics_service.store.connection import Store
from jobs.registry import JOBS
from jobs.runner import run_once
from tests.integration.conftest import database
from tests.integration.test_http import HISTORIES, NOON, ROUTES, SNAPSHOT_ROUTES, USER, expect_error

STATES = [path for path in SNAPSHOT_ROUTES if path not in HISTORIES]
FLAGS = ("with_text", "with_value", "with_percent")
SUMS = ("/api/v1/markets", "/api/v1/markets/supply", "/api/v1/markets/tvl")
# Every job has a snapshot at each of these instants, and nothing has one before.
INSTANTS = (NOON, NOON + 60, NOON + 86_400)
LATER = NOON + 5 * 86_400
Client = falcon.testing.TestClient
Result = falcon.testing.Result


class Lively(SimulatedSource):
    """The simulated protocol, except that positions change all the time."""

    def positions(self, at: object) -> Iterator[Position]:
        """The same positions with unclaimed rewards that depend on the minute."""
        for number, position in enumerate(super().positions(at)):
            yield replace(position, unclaimed=int(at.timestamp()) // 60 * number % 7)


@dataclass
class Recorded:
    """A store, and what was answered right after the snapshots of each instant, by instant and question."""

    settings: Settings
    store: Store
    answers: dict[int, dict[str, Result]] = field(default_factory=dict)

    def client(self, now: int = LATER) -> Client:
        """The service at a unix second, with the heads that there are then."""
        heads = Heads(self.store, every=None)
        return falcon.testing.TestClient(create_app(self.settings, self.store, lambda: instant(now), heads))


def take(store: Store, second: int) -> None:
    """Run all jobs for an instant."""
    for job in JOBS.values():
        run_once(job, Lively("1"), store, instant(second))


def questions(client: Client) -> dict[str, str]:
    """Every path of current state with its query, and once more with all variants that it has."""
    paths = client.simulate_get("/api/v1/openapi.json").json["paths"]
    asked = {}
    for path in STATES:
        template = path.replace(USER, "/api/v1/users/{address}").replace("/accounts/0", "/accounts/{index}")
        names = {one["name"] for one in paths[template]["get"]["parameters"]}
        query = "&".join(part for part in ROUTES[path].split("&") if part and not part.startswith("with_"))
        for flags in ((), FLAGS):
            more = [f"{flag}=true" for flag in flags if flag in names]
            asked[f"{path}?{'&'.join([*filter(None, [query]), *more])}"] = path
    return asked


def ask(client: Client, question: str, at: object = None, **headers: str) -> Result:
    path, _, query = question.partition("?")
    parts = [query, f"at={at}"] if at is not None else [query]
    return client.simulate_get(path, query_string="&".join(filter(None, parts)), headers=headers)


@pytest.fixture(scope="module")
def recorded(server: Settings) -> Iterator[Recorded]:
    """What all paths answered at each instant, and snapshots of all instants."""
    settings = replace(server, clickhouse_database="test_as_of")
    with database(settings) as store:
        found = Recorded(settings, store)
        for second in INSTANTS:
            take(store, second)
            client = found.client(second + 30)
            found.answers[second] = {one: ask(client, one) for one in questions(client)}
        yield found


def as_of(question: str, then: str) -> str:
    """What `As-Of` says of a moment: sums over markets are valued at prices that were stored with the markets."""
    only_sums = question.partition("?")[0] in SUMS and "with_value" not in question
    return then.partition(", prices")[0] if only_sums else then


def test_what_was_answered_then_is_answered_again(recorded: Recorded) -> None:
    client, seen = recorded.client(), set()
    for second, answers in recorded.answers.items():
        for question, then in answers.items():
            assert then.status_code == 200, question
            for at in (second, second + 7):
                now = ask(client, question, at)
                assert now.content == then.content, (question, at)
                assert now.headers["as-of"] == as_of(question, then.headers["as-of"]), (question, at)
                assert now.headers["last-modified"] == then.headers["last-modified"]
                assert now.headers["etag"] == then.headers["etag"]
            seen.add(then.content)
    # Most answers differ from one instant to the next.
    assert len(seen) > 2 * len(recorded.answers[NOON])


def test_there_is_nothing_before_the_first_snapshot(recorded: Recorded) -> None:
    client = recorded.client()
    for question in recorded.answers[NOON]:
        message = expect_error(ask(client, question, NOON - 1), 404, "entity_not_found", "user")
        assert message.startswith("at: there is no snapshot of "), question


def test_the_future_is_refused(recorded: Recorded) -> None:
    client = recorded.client(NOON + 90)
    assert ask(client, "/api/v1/assets", NOON + 90).status_code == 200
    for at in (NOON + 91, "2025-03-01", "2025-03-01T12:01:31Z", "2025-03-01T12:01:31"):
        message = expect_error(ask(client, "/api/v1/assets", at), 400, "query_parameter_invalid", "client")
        assert message.startswith("Query parameter at: 2025-03-01T"), message
        assert "is in the future; it is 2025-03-01T12:01:30Z" in message


@pytest.mark.parametrize(
    ("at", "instant"),
    [
        ("now-4d", NOON + 86_400),
        ("now-7199min", NOON + 60),
        ("2025-03-01", NOON + 60),
        # Seven in the morning of New York is noon.
        ("2025-03-01T07:00:59&tz=America/New_York", NOON),
        ("2025-03-01T13:01:00+01:00", NOON + 60),
        ("2025-03-01T13:01:00%2B01:00", NOON + 60),
    ],
)
def test_every_form_of_a_time_names_a_moment(recorded: Recorded, at: str, instant: int) -> None:
    answer = ask(recorded.client(), "/api/v1/assets/prices?", at)
    assert answer.headers["as-of"] == f"prices=@{instant}"


@pytest.mark.parametrize("at", ["", "yesterday", "1740830400.5", "1740830400000", "now+1d"])
def test_a_malformed_moment_is_refused(recorded: Recorded, at: str) -> None:
    message = expect_error(ask(recorded.client(), "/api/v1/assets", at), 400, "query_parameter_invalid", "client")
    assert f"at={at!r}".replace("+", " ") in message
