"""State as of a moment: what was answered then is answered again, whatever came later (rule 8.12)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.assets import Asset
from analytics_service.market.instants import from_unix, unix_second
from analytics_service.market.markets import LendMarket
from analytics_service.market.prices import Price
from analytics_service.state.watcher import HeadWatcher
from analytics_service.store.ledger import new_version, record_rewrite
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests.doubles import Hook, Statement, WatchedStore, nothing
from tests.integration import imports
from tests.integration.databases import database
from tests.integration.handmade import HandMade, market
from tests.integration.lending import Lending
from tests.integration.pages import Observations, asset, commit
from tests.integration.routes import NOON, ROUTES, STATES, USER, expect_error

FLAGS = ("with_text", "with_value", "with_percent")
VALIDATORS = ("last-modified", "etag")
SUMS = ("/api/v1/markets", "/api/v1/markets/supply", "/api/v1/markets/tvl")
LATER = NOON + 5 * 86_400
Client = falcon.testing.TestClient
Result = falcon.testing.Result


@dataclass
class Recorded:
    """A store with snapshots of two instants, and what was answered right after those of the first, by question."""

    settings: Settings
    store: Store
    answers: dict[str, Result]

    def client(self, now: int = LATER) -> Client:
        """The service at a unix second, with the heads that there are then."""
        heads = HeadWatcher(self.store, interval=None)
        return falcon.testing.TestClient(create_app(self.settings, self.store, lambda: from_unix(now), heads))


def take(store: Store, second: int) -> None:
    """Run all jobs for an instant."""
    for job in JOBS.values():
        take_snapshot(job, Lending(NOON - 600), store, from_unix(second))


def questions(client: Client) -> dict[str, str]:
    """Every path of current state with its query and all variants that it has; those of sums first without."""
    paths = client.simulate_get("/api/v1/openapi.json").json["paths"]
    asked = {}
    for path in STATES:
        template = path.replace(USER, "/api/v1/users/{address}").replace("/accounts/0", "/accounts/{index}")
        names = {one["name"] for one in paths[template]["get"]["parameters"]}
        query = "&".join(part for part in ROUTES[path].query.split("&") if part and not part.startswith("with_"))
        for flags in ((), FLAGS) if path in SUMS else (FLAGS,):
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
        found = Recorded(settings, store, {})
        take(store, NOON)
        client = found.client(NOON + 30)
        # Lookups read what lists read.
        asked = [question for question in questions(client) if "lookup" not in question]
        found.answers.update({question: ask(client, question) for question in asked})
        take(store, NOON + 60)
        yield found


def as_of(question: str, then: str) -> str:
    """What `As-Of` says of a moment: sums over markets are valued at prices that were stored with the markets."""
    only_sums = question.partition("?")[0] in SUMS and "with_value" not in question
    return then.partition(", prices")[0] if only_sums else then


def test_what_was_answered_then_is_answered_again(recorded: Recorded) -> None:
    """At its second, or a little later."""
    client, newest = recorded.client(), {}
    for number, (question, then) in enumerate(recorded.answers.items()):
        assert then.status_code == 200, question
        at = NOON + 7 * (number % 2)
        now = ask(client, question, at)
        assert now.content == then.content, (question, at)
        assert now.headers["as-of"] == as_of(question, then.headers["as-of"]), (question, at)
        assert [now.headers[name] for name in VALIDATORS] == [then.headers[name] for name in VALIDATORS]
        newest[ROUTES[question.partition("?")[0]].datasets] = question
    # What is made from the same datasets is another answer at the second instant.
    assert sum(ask(client, one).content != recorded.answers[one].content for one in newest.values()) > len(newest) / 2


def test_there_is_nothing_before_the_first_snapshot(recorded: Recorded) -> None:
    """What concerns accounts lacks positions, whatever else it is made from."""
    client = recorded.client()
    # The last question for each set of datasets.
    for datasets, question in {ROUTES[one.partition("?")[0]].datasets: one for one in recorded.answers}.items():
        lacking = next(one for one in ("loans", "positions", *datasets.split()) if one in datasets)
        message = expect_error(ask(client, question, NOON - 1), 404, "entity_not_found", "user")
        named = "markets" if "market/state" in question else lacking
        assert message.startswith(f"at: there is no snapshot of {named} "), question
        assert message.endswith(" at or before that moment. Ask for 2025-03-01T12:00:00Z or later."), question


def test_the_future_is_refused(recorded: Recorded) -> None:
    client = recorded.client(NOON + 90)
    assert ask(client, "/api/v1/assets", NOON + 90).status_code == 200
    for at in (NOON + 91, "2025-03-01"):
        message = expect_error(ask(client, "/api/v1/assets", at), 400, "query_parameter_invalid", "client")
        assert message.startswith(f"Query parameter at='{at}': 2025-03-01T"), message
        assert "is in the future; it is now 2025-03-01T12:01:30Z" in message
        assert ("A date means its last second" in message) == (at == "2025-03-01")


def test_a_moment_is_a_time_of_the_zone_and_a_date_is_its_last_second(recorded: Recorded) -> None:
    """Seven in the morning of New York is noon."""
    client = recorded.client()
    for at, instant in (("2025-03-01", NOON + 60), ("2025-03-01T07:00:59&tz=America/New_York", NOON)):
        assert ask(client, f"{PRICES}?", at).headers["as-of"] == f"prices=@{instant}"
    expect_error(ask(client, PRICES, "yesterday"), 400, "query_parameter_invalid", "client")


PRICES = "/api/v1/assets/prices"
MINUTE = 60


class Quoting(HandMade):
    """Quotes prices that tests set, by second of the snapshot; each was observed so many seconds before."""

    def __init__(self, usd: Mapping[int, str], decimals: int = 6, lag: int = 0) -> None:
        super().__init__()
        self.usd, self.decimals, self.lag = usd, decimals, lag

    def assets(self, at: datetime) -> Sequence[Asset]:
        return [replace(asset("lend"), decimals_display=self.decimals)]

    def prices(self, at: datetime) -> Sequence[Price]:
        return [Price("token;lend", at - timedelta(seconds=self.lag), Decimal(self.usd[unix_second(at)]))]


def snapshots(store: Store, usd: Mapping[int, str]) -> None:
    """Snapshots of prices as a job writes them, in order."""
    for second, price in usd.items():
        commit(store, {"token;lend": [(second, Decimal(price))]})


def add_to_the_past(store: Store, usd: Mapping[int, str], decimals: int = 6) -> None:
    """A backfill of snapshots of prices."""
    backfill(JOBS["prices"], Quoting(usd, decimals), store, [*map(from_unix, usd)])


@dataclass
class Prices:
    """A service over a store of its own, at a time that tests set, and the number of its queries."""

    settings: Settings
    now: int

    def __post_init__(self) -> None:
        self.before: Hook = nothing
        self.store = WatchedStore(self.settings, before=lambda statement: self.before(statement))
        self.heads = HeadWatcher(self.store, interval=None)
        app = create_app(self.settings, self.store, lambda: from_unix(self.now), self.heads)
        self.client = falcon.testing.TestClient(app)

    def get(self, at: object, path: str = PRICES, **headers: str) -> Result:
        """An answer after a look at the ledger."""
        self.heads.look()
        return ask(self.client, path, at, **headers)

    def price(self, at: object) -> tuple[str, str]:
        """The price of the asset, and which snapshot it is from."""
        answer = self.get(at)
        return answer.json["data"][0]["price"]["price"], answer.headers["as-of"]

    def queries(self, at: object) -> int:
        """How many queries an answer takes, apart from the look at the ledger."""
        self.heads.look()
        before = self.store.queries.total()
        assert ask(self.client, f"{PRICES}?", at).status_code == 200
        return self.store.queries.total() - before


def refusal(answer: Result) -> str:
    """The message of an answer that finds nothing as old as its moment."""
    return expect_error(answer, 404, "entity_not_found", "user")


@pytest.fixture
def prices(settings: Settings, store: Store) -> Iterator[Prices]:
    # Nothing is read in the background.
    service = Prices(replace(settings, history_memory=0), NOON + 90)
    yield service
    service.store.close()


def test_an_answer_is_closed_ten_minutes_later_if_later_snapshots_have_followed(prices: Prices, store: Store) -> None:
    """Until then it may be cached until the next snapshot is due, as the present state may."""
    snapshots(store, {NOON: "1", NOON + MINUTE: "2"})
    first, newest = prices.get(NOON + 10), prices.get(NOON + MINUTE + 10)
    assert [first.headers["cache-control"], newest.headers["cache-control"]] == ["public, max-age=30"] * 2
    prices.now = NOON + 609
    assert prices.get(NOON + 10).headers["cache-control"] == "public, max-age=1"
    prices.now = NOON + 610
    assert prices.get(NOON + 10).headers["cache-control"] == "public, max-age=86400"
    # Nothing has followed this one.
    prices.now = NOON + 10_000
    assert prices.get(NOON + MINUTE + 10).headers["cache-control"] == "public, max-age=1"
    snapshots(store, {NOON + 9960: "3"})
    prices.get(NOON + 10)
    # A closed answer stays in memory.
    snapshots(store, {NOON + 9970: "4"})
    assert prices.queries(NOON + 10) == 0
    assert prices.queries(NOON + 8000) > 0
    assert prices.get(NOON + MINUTE + 10).headers["cache-control"] == "public, max-age=86400"
    for before, at in ((first, NOON + 10), (newest, NOON + MINUTE + 10)):
        again = prices.get(at)
        assert (again.headers["etag"], again.headers["as-of"]) == (before.headers["etag"], before.headers["as-of"])
        assert prices.get(at, **{"If-None-Match": before.headers["etag"]}).status_code == 304


def test_changes_are_from_what_the_path_shows_so_long_before(prices: Prices, store: Store) -> None:
    """The clocks of New York go forward on the 9th: its day before noon of the 9th, UTC, began an hour later."""
    day = NOON + 8 * 86_400
    snapshots(store, {day - 86_400: "8", day - 82_800: "4", day - 90: "3", day: "2"})
    prices.now = day + 90
    answer = prices.get(day, f"{PRICES}?changes=90min,1min,24h,1d,4w&tz=America/New_York&with_text=true")
    assert answer.status_code == 200, answer.text
    quote = answer.json["data"][0]["price"]
    # 2 after 4, 3, 8, 4 and nothing.
    assert quote["changes"] == {"90min": "-0.5", "1min": "-0.333333", "24h": "-0.75", "1d": "-0.5", "4w": None}
    texts = {"90min": "-50.00%", "1min": "-33.33%", "24h": "-75.00%", "1d": "-50.00%", "4w": "N/A"}
    assert quote["extra"]["text"]["changes"] == texts
    assert prices.get(None, f"{PRICES}?changes=30min").json["data"][0]["price"]["changes"] == {"30min": "-0.5"}
    assert "changes" not in prices.get(None).json["data"][0]["price"]
    # A correction of the past changes an answer that is kept.
    add_to_the_past(store, {day - 3600: "5"})
    assert prices.get(None, f"{PRICES}?changes=30min").json["data"][0]["price"]["changes"] == {"30min": "-0.6"}


def test_a_corrected_moment_is_answered_anew_and_other_moments_as_before(prices: Prices, store: Store) -> None:
    """A backfill adds a snapshot between two others, and one before the first."""
    assert refusal(prices.get(NOON)).endswith(" at or before that moment.")
    snapshots(store, {NOON: "1", NOON + MINUTE: "2", NOON + 3 * MINUTE: "3"})
    prices.now = NOON + 10_000
    moments = [NOON + 10, NOON + 2 * MINUTE + 10]
    before = [prices.get(at) for at in moments]
    assert refusal(prices.get(NOON - 1)).endswith(" Ask for 2025-03-01T12:00:00Z or later.")
    # There are no markets yet.
    assert refusal(prices.get(NOON, "/api/v1/markets/config")).endswith(" at or before that moment.")
    add_to_the_past(store, {NOON - 60: "7", NOON + 2 * MINUTE: "2.5"})
    after = [prices.get(at) for at in moments]
    assert after[0].content == before[0].content
    assert after[0].headers["etag"] == before[0].headers["etag"]
    assert prices.price(moments[0]) == ("1", f"prices=@{NOON}")
    assert prices.price(moments[1]) == ("2.5", f"prices=@{NOON + 2 * MINUTE}")
    assert prices.price(NOON - 1) == ("7", f"prices=@{NOON - 60}")
    assert refusal(prices.get(NOON - 61)).endswith(" Ask for 2025-03-01T11:59:00Z or later.")


def test_a_moment_after_all_observations_has_the_last_of_them(prices: Prices, store: Store) -> None:
    """Those of 11:58 and 11:59, by snapshots of 12:00 and 12:01: no observation has closed their quarter of an hour."""
    prices.now = NOON + 10_000
    for second, usd in ((NOON, "1"), (NOON + 60, "2")):
        take_snapshot(JOBS["prices"], Quoting({second: usd}, lag=120), store, from_unix(second))
    assert prices.price(NOON + 30) == ("2", f"prices=@{NOON}")


def test_an_answer_is_not_closed_while_later_observations_may_be_added_before_its_moment(
    prices: Prices, store: Store
) -> None:
    """The oracle observed nothing between two snapshots; an import may."""
    for second in (NOON, NOON + MINUTE):
        take_snapshot(JOBS["prices"], Quoting({second: "1"}, lag=second - NOON), store, from_unix(second))
    prices.now = NOON + 10_000
    assert prices.get(NOON + 10).headers["cache-control"] == "public, max-age=1"
    snapshots(store, {NOON + 9960: "2"})
    assert prices.get(NOON + 10).headers["cache-control"] == "public, max-age=86400"


def test_an_answer_is_not_closed_while_its_assets_are_described_as_they_are_now(prices: Prices, store: Store) -> None:
    """Prices began later than the markets; each of their snapshots may describe assets otherwise."""
    for second in (NOON, NOON + MINUTE):
        take_snapshot(JOBS["markets"], HandMade(), store, from_unix(second))
    prices.now = NOON + 10_000

    def lend() -> Result:
        return prices.get(NOON + 10, "/api/v1/markets/lend")

    # Nothing is later than the moment that assets are described with, whether or not there are prices.
    assert lend().headers["cache-control"] == "public, max-age=1"
    for second, decimals in ((NOON + 9000, 4), (NOON + 9060, 5)):
        take_snapshot(JOBS["prices"], Quoting({second: "1"}, decimals), store, from_unix(second))
        assert decimals in [one["asset_info"]["metadata"]["decimals_display"] for one in lend().json["data"]]
        assert lend().headers["cache-control"] == "public, max-age=1"
    # This path describes no assets.
    assert prices.get(NOON + 10, "/api/v1/markets/config").headers["cache-control"] == "public, max-age=86400"


def test_a_relative_moment_moves_with_the_clock(prices: Prices, store: Store) -> None:
    snapshots(store, {NOON: "1", NOON + MINUTE: "2"})
    assert prices.price("now-1min") == ("1", f"prices=@{NOON}")
    prices.now += 30
    assert prices.price("now-1min") == ("2", f"prices=@{NOON + MINUTE}")
    snapshots(store, {NOON + 2 * MINUTE: "3"})
    assert prices.price("now") == ("3", f"prices=@{NOON + 2 * MINUTE}")
    # Clients may keep it for a second, however long ago the moment is.
    prices.now = NOON + 10_000
    # Within its second, it is answered from memory.
    assert prices.queries("now-166min") > 0
    assert prices.queries("now-166min") == 0
    answers = [prices.get(at) for at in ("now-166min", NOON + 40)]
    assert [one.headers["cache-control"] for one in answers] == ["public, max-age=1", "public, max-age=86400"]
    assert answers[0].content == answers[1].content
    # For a moment with the same snapshots, only the ledger is read.
    before = prices.store.queries.copy()
    prices.get(NOON + 41)
    assert {*(prices.store.queries - before)} == {
        "read_ledger",
        "find_snapshot_before",
        "find_max_version",
        "count_rewrites",
    }


def test_of_imported_history_the_newest_observation_counts(prices: Prices, store: Store, tmp_path: Path) -> None:
    rows = [("token;0xa", NOON, "1"), ("token;0xa", NOON + 500, "2"), ("token;0xb", NOON + 700, "5")]
    imports.run(store, imports.prices_file(tmp_path, [(one, at - 1000, usd) for one, at, usd in rows]))
    prices.now = NOON + 10_000
    assert prices.price(NOON - 501) == ("1", f"prices=@{NOON - 1000}")
    assert prices.price(NOON - 400) == ("2", f"prices=@{NOON - 500}")
    closed = prices.get(NOON - 300)
    assert closed.headers["as-of"] == f"prices=@{NOON - 300}"
    assert [one["price"]["price"] for one in closed.json["data"]] == ["2", "5"]
    # Another import may follow soon. Rewrites have ClickHouse's time.
    for seconds in (0, 300):
        prices.now = unix_second(datetime.now(UTC)) + seconds
        assert prices.get(NOON - 301).headers["cache-control"] == "public, max-age=1"
    prices.now = unix_second(datetime.now(UTC)) + 601
    assert prices.get(NOON - 301).headers["cache-control"] == "public, max-age=86400"
    # Nothing is later than this one.
    assert closed.headers["cache-control"] == "public, max-age=1"
    # 1,000 s before noon.
    assert refusal(prices.get(NOON - 1001)).endswith(" Ask for 2025-03-01T11:43:20Z or later.")


def test_an_import_between_two_snapshots_counts_from_its_observations_on(
    prices: Prices, store: Store, tmp_path: Path
) -> None:
    snapshots(store, {NOON - 4000: "1", NOON: "2"})
    prices.now = NOON + 10_000
    assert prices.get(NOON - 1000).headers["as-of"] == f"prices=@{NOON - 4000}"
    rows = [("token;0xa", NOON - 3000, "7"), ("token;0xa", NOON - 2000, "8")]
    imports.run(store, imports.prices_file(tmp_path, rows))
    found = {at: prices.get(NOON - at) for at in (3500, 3000, 2500, 1000, 0)}
    instants = {at: answer.headers["as-of"] for at, answer in found.items()}
    expected = {3500: 4000, 3000: 3000, 2500: 3000, 1000: 2000, 0: 0}
    assert instants == {at: f"prices=@{NOON - newest}" for at, newest in expected.items()}
    shown = {at: [one["price"]["price"] for one in answer.json["data"]] for at, answer in found.items()}
    assert shown == {3500: ["1"], 3000: ["7", "1"], 2500: ["7", "1"], 1000: ["8", "1"], 0: ["8", "2"]}


def test_assets_are_described_as_they_were_at_the_moment(prices: Prices, store: Store) -> None:
    """An asset's definition changes with the second snapshot; that of a backfill of the past counts until the first."""
    for second, digits in ((NOON, 2), (NOON + MINUTE, 4)):
        take_snapshot(JOBS["prices"], Quoting({second: "1"}, digits), store, from_unix(second))
    prices.now = NOON + 10_000

    def decimals(at: int) -> int:
        return int(prices.get(at, "/api/v1/assets").json["data"][0]["metadata"]["decimals_display"])

    assert (decimals(NOON + 10), decimals(NOON + MINUTE)) == (2, 4)
    add_to_the_past(store, {NOON - 60: "7"}, 9)
    assert (decimals(NOON - 10), decimals(NOON + 10), decimals(NOON + MINUTE)) == (9, 2, 4)


def test_a_moment_that_is_corrected_while_it_is_read_is_read_again(prices: Prices, store: Store) -> None:
    """A rewrite adds a snapshot between the look at the ledger for that moment and the reading of its prices."""
    snapshots(store, {NOON: "1", NOON + 2 * MINUTE: "3"})
    prices.now = NOON + 10_000
    corrections: Observations = {"token;lend": [(NOON + MINUTE, Decimal(2))]}

    def correct(statement: Statement) -> None:
        if statement.name == "read_last_rows" and corrections:
            version = new_version(store)
            commit(store, dict([corrections.popitem()]), "backfill", version)
            record_rewrite(store, ["prices"], version, finished=1)

    prices.before = correct
    assert prices.price(NOON + 90) == ("2", f"prices=@{NOON + MINUTE}")
    assert not corrections


@pytest.fixture(scope="module")
def lent(server: Settings) -> Iterator[Settings]:
    """Five units are lent. Prices are 1 at first and 3 in the end; the markets were taken at a price of 2."""
    settings = replace(server, clickhouse_database="test_as_of_lent", history_memory=0)
    with database(settings) as store:
        snapshots(store, {NOON - MINUTE: "1", NOON + MINUTE: "3"})
        for second in (NOON - 3600, NOON):
            source = Quoting({second: "2"})
            source.markets_ = [market("token;lend", LendMarket(Decimal(0), 5 * 10**6, 5 * 10**6))]
            take_snapshot(JOBS["markets"], source, store, from_unix(second))
        yield settings


@pytest.fixture
def lending(lent: Settings) -> Iterator[Prices]:
    service = Prices(lent, NOON + 10_000)
    yield service
    service.store.close()


def sums(service: Prices, at: int | None) -> tuple[str, str]:
    """The USD sum of what is lent, and what it is made from."""
    answer = service.get(at, "/api/v1/markets/supply")
    return answer.json["data"]["lend"]["principal"], answer.headers["as-of"]


def test_sums_of_a_moment_are_at_the_prices_that_the_markets_were_taken_with(lending: Prices) -> None:
    assert sums(lending, None) == ("15", f"markets=@{NOON}, prices=@{NOON + MINUTE}")
    assert sums(lending, NOON + 90) == ("10", f"markets=@{NOON}")
    assert sums(lending, NOON - 10) == ("10", f"markets=@{NOON - 3600}")
    # So they equal the points of their history.
    points = imports.query(lending.settings, "SELECT toUnixTimestamp(observed_at), usd FROM tvl ORDER BY ALL")
    assert points == [(NOON - 3600, Decimal(10)), (NOON, Decimal(10))]
    # All other values are at the prices of the moment.
    lookup = "/api/v1/markets/lend/lookup"
    for at, value in ((NOON + 90, "15"), (NOON + 30, "5")):
        question = f"{lookup}?asset_id=token;lend&with_value=true"
        answer = ask(lending.client, question, at)
        assert answer.json["data"]["state"]["extra"]["value"]["principal_sum"] == value
        assert {part.split("=")[0] for part in answer.headers["as-of"].split(", ")} == {"markets", "prices"}


def test_before_the_first_prices_there_are_amounts_and_sums_but_no_other_values(lending: Prices) -> None:
    """Amounts are of assets as they are described now."""
    path, early = "/api/v1/markets/lend", NOON - 3000
    assert lending.get(early, path).json["data"][0]["state"]["principal_sum"] == "5000000"
    message = expect_error(ask(lending.client, f"{path}?with_value=true", early), 404, "entity_not_found", "user")
    assert "prices" in message
    # Where markets are missing as well, the moment is one that has both.
    both = expect_error(ask(lending.client, f"{path}?with_value=true", NOON - 4000), 404, "entity_not_found", "user")
    assert "markets" in both
    assert both.endswith(" Ask for 2025-03-01T11:59:00Z or later.")
    # Sums are at the prices that the markets were taken with.
    assert sums(lending, early) == ("10", f"markets=@{NOON - 3600}")
    newer = ask(lending.client, f"{path}?shape=newer", early)
    assert newer.json["data"]["supply"]["principal"] == "10"
