"""History pages over a real ClickHouse against the oracle."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.clickhouse.columns import with_version
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.prices import Price
from analytics_service.store import ledger
from analytics_service.store.datasets.observations import price_frame
from tests import oracle
from tests.doubles import FirstHeads
from tests.integration import imports
from tests.integration.pages import Observations, Pages, commit


def second(*at: int) -> int:
    return int(datetime(*at, tzinfo=UTC).timestamp())  # type: ignore[misc, arg-type]


@pytest.fixture
def client(settings: Settings, store: Store) -> falcon.testing.TestClient:
    """The service. What is asked again is made again, from memory."""
    own = replace(settings, answer_memory=0)
    return falcon.testing.TestClient(create_app(own, store, heads=FirstHeads(store)))


def merged(*parts: Observations) -> oracle.Oracle:
    names = {name for part in parts for name in part}
    return oracle.Oracle({name: [row for part in parts for row in part.get(name, [])] for name in names})


def value(draw: random.Random) -> Decimal:
    return Decimal(draw.randint(0, 10**19)).scaleb(-draw.randint(0, 18))


def random_history(draw: random.Random) -> Observations:
    """Series by the minute, by the hour with gaps, by the day, and a late, sparse one; around changes of clocks. Values
    are unknown now and then, for a while."""

    def walk(first: int, last: int, step: int, chance: float) -> list[tuple[int, Decimal | None]]:
        seconds = [at + draw.randint(0, step - 1) for at in range(first, last, step) if draw.random() < chance]
        known = [draw.random() < 0.9 for _ in range(first, last, 4 * step)]
        return [(at, value(draw) if known[(at - first) // (4 * step)] else None) for at in seconds]

    return {
        "token;minutes": walk(second(2026, 3, 7), second(2026, 3, 10), 60, 0.9),
        "token;hours": walk(second(2026, 2, 1), second(2026, 5, 1), 3600, 0.6),
        "token;days": walk(second(2025, 1, 1), second(2026, 10, 1), 86_400, 0.7),
        "token;rare": walk(second(2024, 9, 5), second(2026, 9, 20), 40 * 86_400, 0.8),
        "token;late": walk(second(2026, 9, 4), second(2026, 9, 9), 1800, 0.9),
    }


@pytest.mark.parametrize("count", [8, pytest.param(400, marks=pytest.mark.slow)])
def test_random_pages_agree_with_the_oracle(
    client: falcon.testing.TestClient, settings: Settings, store: Store, draw: random.Random, count: int
) -> None:
    first = random_history(draw)
    # A later run corrects some of the same seconds; the second write must win wherever rows lie.
    corrected: Observations = {
        name: [(at, draw.choice([value(draw), value(draw), None])) for at, _ in draw.sample(rows, len(rows) // 3)]
        for name, rows in first.items()
    }
    commit(store, first)
    commit(store, corrected, kind="import")
    known = merged(first, corrected)
    rows = {(name, at): usd for name, seen in known.series.items() for at, usd in seen}
    assert set(imports.query(settings, imports.ROLLUPS.format(history="price"))) == oracle.rollups(rows)
    pages = Pages(client, known, draw)
    for number in range(count):
        # From now on some blocks are in memory, and others are loaded while pages are read from the store.
        if number in (3, 6):
            client.app.memory.wait()
        pages.check(second(2024, 1, 1), second(2026, 12, 1))
    for _ in range(count // 3):
        pages.check(second(2026, 3, 5), second(2026, 3, 13))


def test_a_thousand_assets_are_read_whatever_the_length_of_their_ids(
    client: falcon.testing.TestClient, store: Store
) -> None:
    """All ids together are longer than what ClickHouse takes for a parameter unless it is told to."""
    noon = second(2025, 3, 1, 12)
    commit(store, {f"token;{number:0190}": [(noon + number, Decimal(number))] for number in range(1_000)})
    listed = client.simulate_get("/api/v1/assets/prices").json["data"]
    assert [one["price"]["price"] for one in listed] == [str(number) for number in range(1_000)]
    for _ in range(2):
        query = f"start={noon}&end={noon + 3599}&period=h"
        series = client.simulate_get("/api/v1/assets/price-history", query_string=query).json["data"]["series"]
        assert [one["points"][0]["v"] for one in series] == [str(number) for number in range(1_000)]
        client.app.memory.wait()


def test_a_zone_whose_offset_was_odd_long_ago_is_exact_too(client: falcon.testing.TestClient, store: Store) -> None:
    """Africa/Monrovia was 44 minutes and 30 seconds behind UTC until 1972: no rollup fits its days."""
    day = second(1971, 6, 2)
    rows = [(day + offset, Decimal(offset)) for offset in range(0, 2 * 86_400, 60)]
    commit(store, {"token;old": rows})
    pages = Pages(client, merged({"token;old": rows}), random.Random(1))
    begins = [second(1971, 6, 2, 0, 44, 30) + k * 86_400 for k in range(3)]
    pages.compare(begins[0], begins[1], "d", 1, "Africa/Monrovia", 10, 0, "previous", None, begins)


def test_the_first_hour_of_all_time_can_be_cut_short(client: falcon.testing.TestClient, store: Store) -> None:
    """In zones that are half an hour off, the hour at 1970 begins before; blocks hold nothing from before it."""
    rows = {"token;a": [(600, Decimal(1)), (3000, Decimal(2))], "token;b": [(1200, Decimal(3)), (9000, Decimal(4))]}
    commit(store, rows)
    pages = Pages(client, merged(rows), random.Random(1))
    for zone in ("UTC", "Asia/Kolkata", "America/St_Johns") * 2:
        for end in (0, 599, 600, 900, 1799, 1800, 2999, 3599):
            grid = oracle.begins(0, end, "h", 1, zone)
            pages.compare(0, end, "h", 1, zone, 10, 0, "previous", None, grid)
            pages.compare(0, end, "h", 1, zone, 10, 0, "none", None, grid)
        client.app.memory.wait()


def test_a_value_never_comes_from_after_the_end_or_from_an_uncommitted_run(
    client: falcon.testing.TestClient, store: Store
) -> None:
    """`end` lies inside the last bucket; rows later than the newest completed run do not count yet."""
    noon = second(2026, 1, 1, 12)
    commit(store, {"token;a": [(noon, Decimal(1)), (noon + 600, Decimal(2)), (noon + 1200, Decimal(3))]})
    query = f"start={noon}&period=h&asset_ids=token;a&end="

    def value(end: int) -> object:
        answer = client.simulate_get("/api/v1/assets/price-history", query_string=query + str(end)).json
        return answer["data"]["series"][0]["points"][0]["v"]

    assert [value(noon), value(noon + 599), value(noon + 600), value(noon + 1200), value(noon + 3599)] == list("11233")


def test_an_asset_is_listed_once_a_completed_run_has_a_price_of_it(
    client: falcon.testing.TestClient, store: Store
) -> None:
    """Another run has written prices in the month of the newest completed one and after it."""
    noon = second(2026, 1, 1, 12)
    commit(store, {"token;a": [(noon, Decimal(1))], "token;b": [(noon - 60, Decimal(2))]})
    for asset_id, at in (("token;b", noon + 60), ("token;c", noon + 60), ("token;d", second(2026, 2, 1))):
        rows = price_frame([Price(asset_id, oracle.instant(at), Decimal(3))])
        store.insert("observation", with_version(rows, ledger.new_version(store)))
    query = f"start={noon}&end={noon + 3600}&period=h"
    answer = client.simulate_get("/api/v1/assets/price-history", query_string=query).json
    values = {series["asset"]["id"]: series["points"][0]["v"] for series in answer["data"]["series"]}
    assert values == {"token;a": "1", "token;b": "2"}


def test_decimals_are_plain_without_exponent_or_trailing_zeros(client: falcon.testing.TestClient, store: Store) -> None:
    prices = ["0", "0.000000000000000001", "1572.5", "99999999999999999999.999999999999999999", "100"]
    noon = second(2026, 1, 1, 12)
    commit(store, {"token;a": [(noon + k * 3600, Decimal(price)) for k, price in enumerate(prices)]})
    for period in ("h", "d"):
        query = f"start={noon}&end={noon + 4 * 3600}&period={period}"
        (series,) = client.simulate_get("/api/v1/assets/price-history", query_string=query).json["data"]["series"]
        assert [point["v"] for point in series["points"]] == (prices if period == "h" else ["100"])


def test_a_page_before_the_first_observation_is_as_of_nothing(client: falcon.testing.TestClient, store: Store) -> None:
    """In the month of the first observation or long before, from memory and from the store."""
    noon = second(2026, 3, 1, 12)
    commit(store, {"token;a": [(noon, Decimal(7))], "token;b": [(noon + 60, Decimal(8))]})
    ends = (noon - 1, noon - 3600, second(2025, 1, 1))
    for end, before, ids in product(ends, (7200, 90_000), ("", "&asset_ids=token;a")):
        start = end - before
        query = f"start={start}&end={end}&period=h{ids}"
        answer = client.simulate_get("/api/v1/assets/price-history", query_string=query)
        assert {point["v"] for point in answer.json["data"]["series"][0]["points"]} == {None}
        assert not {"as-of", "last-modified"} & {name.lower() for name in answer.headers}
        client.app.memory.wait()


def test_a_page_of_one_bucket_of_no_length_carries_the_value_before_it(
    client: falcon.testing.TestClient, store: Store
) -> None:
    """Pacific/Apia skipped 2011-12-30 whole."""
    commit(store, {"token;a": [(second(2011, 12, 29, 12), Decimal(7)), (second(2012, 1, 5), Decimal(8))]})
    query = f"start={second(2011, 12, 29, 12)}&end={second(2012, 1, 3)}&period=d&tz=Pacific/Apia&limit=1&offset=1"
    answer = client.simulate_get("/api/v1/assets/price-history", query_string=query).json
    assert answer["data"]["series"][0]["points"] == [{"t": second(2011, 12, 30, 10), "v": "7"}]
