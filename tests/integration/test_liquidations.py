"""Sums of liquidations (the debt that they repaid) and loans are exact in whatever order snapshots are taken."""

import random
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import falcon.testing

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import StoreUnavailable
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.instants import multiples_between
from analytics_service.store.commits import begin
from analytics_service.store.datasets.sums import read_loans
from jobs.registry import JOBS
from jobs.runner import backfill, instants_to_fill, take_snapshot
from tests import clickhouse, oracle
from tests.doubles import FreshHeads, dying
from tests.integration.handmade import FINEST, NOON, HandMade, market
from tests.stored import write_assets

JOB = JOBS["loans"]
PATH = "/api/v1/analytics/market/history/liquidations"
SECOND = int(NOON.timestamp())
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
A, B, C = "token;a", "token;b", "token;c"
MARKETS = [market(A, apr="0.1"), market(B, apr="0.1"), market("token;lend")]

Sums = dict[str, Decimal]


def event(
    id_: str, minutes: float, usd: str | None, asset_id: str = A, leg: Leg | None = Leg.DEBT, **more: Any
) -> Event:
    """A leg of a liquidation some minutes after noon."""
    value = None if usd is None else Decimal(usd)
    return Event(id_, Action.LIQUIDATE, asset_id, "0xabc", NOON + minutes * MINUTE, 1, value, leg=leg, **more)


EVENTS = [
    event("first", -90_000, "1000000000.000000000000000001"),
    event("taken", -90_000, "1100000000", B, Leg.COLLATERAL),
    event("second", 0, "10"),
    event("third", 0.5, "100", B),
    replace(event("repaid", 0.6, "5000", leg=None), action=Action.RETURN),
    replace(event("borrowed", 0.7, "7", leg=None), action=Action.BORROW),
    event("unknown", 0.8, None),
    event("fourth", 1.5, "0.000000000000000001"),
]
# Worked out by hand: the debts of the events above up to noon, one minute and two minutes later.
AT_NOON = Decimal("1000000010.000000000000000001")
TOTALS = [AT_NOON, AT_NOON + 100, AT_NOON + 100 + FINEST]


def run(source: HandMade, store: Store, minutes: int) -> None:
    """Take the snapshot of some minutes after noon."""
    take_snapshot(JOB, source, store, NOON + minutes * MINUTE)


def stored(settings: Settings) -> dict[int, Sums]:
    """The liquidations observed at each second by asset id, read as a researcher would."""
    found: dict[int, Sums] = {}
    with clickhouse.client(settings) as own:
        query = (
            "SELECT toUnixTimestamp(observed_at), asset_id, value_exact FROM liquidations UNION ALL "
            "SELECT toUnixTimestamp(observed_at), '', value_exact FROM totals WHERE history = 'liquidations'"
        )
        for at, asset_id, usd in own.query(query).result_rows:
            found.setdefault(at, {})[asset_id] = usd
    return found


def summed(events: Sequence[Event], action: Action, until: float) -> Sums:
    """The plain sums of loans, or of the debts repaid, up to a unix second, by asset id and in all (the empty id)."""
    sums = {"": Decimal(0)}
    for each in {one.id: one for one in events}.values():
        counts = each.action is action and each.leg is not Leg.COLLATERAL
        if counts and each.usd is not None and each.at.timestamp() <= until:
            sums[each.asset_id] = sums.get(each.asset_id, Decimal(0)) + each.usd
            sums[""] += each.usd
    return sums


def without_zeros(sums: Sums) -> Sums:
    return {asset_id: usd for asset_id, usd in sums.items() if usd or not asset_id}


def test_the_debt_that_was_repaid_adds_up_by_asset_and_in_all(settings: Settings, store: Store) -> None:
    """Collateral that was taken, what borrowers returned themselves and debt of unknown value do not count. An asset
    that can be borrowed has a series even before its first liquidation."""
    write_assets(store, [Asset(AssetGroup.TOKEN, key, key, key.upper(), key, 6, 2) for key in ("a", "b")], 1)
    source = HandMade(markets_=MARKETS, events_=EVENTS)
    for minute in range(3):
        run(source, store, minute)
    assert stored(settings) == {
        SECOND - 90_000 * 60: {"": AT_NOON - 10, A: AT_NOON - 10},
        SECOND: {"": AT_NOON, A: AT_NOON, B: Decimal(0)},
        SECOND + 30: {"": TOTALS[1], B: Decimal(100)},
        SECOND + 48: {"": TOTALS[1], A: AT_NOON},
        SECOND + 90: {"": TOTALS[2], A: AT_NOON + FINEST},
    }
    client = falcon.testing.TestClient(create_app(settings, store, heads=FreshHeads(store)))

    def ask(path: str, **query: object) -> Any:
        asked = {"start": SECOND, "end": SECOND + 120, "period": "min", **query}
        answer = client.simulate_get(path, query_string=urlencode(asked))
        assert answer.status_code == 200, answer.json
        return answer.json["data"]

    assert [Decimal(point["v"]) for point in ask(PATH)["points"]] == [TOTALS[1], *TOTALS[2:] * 2]
    assert [point["v"] for point in ask(PATH, agg="first", period="h")["points"]] == ["1000000010.000000000000000001"]
    added = [point["v"] for point in ask(PATH, agg="delta")["points"]]
    assert added == ["110", oracle.text(FINEST), "0"]
    # The first change counts from 0.
    wide = {"start": 0, "period": "d", "interval": 10_000}
    assert [point["v"] for point in ask(PATH, agg="delta", **wide)["points"]] == [None, None, oracle.text(TOTALS[2])]
    series = ask(f"{PATH}/by-asset", symbols="b")["series"]
    assert [(one["asset"]["id"], [point["v"] for point in one["points"]]) for one in series] == [
        (B, ["100", "100", "100"])
    ]


def test_sums_are_the_same_in_any_order_with_any_repeats_and_deaths(
    settings: Settings, store: Store, draw: random.Random
) -> None:
    """Random liquidations, loans and snapshots, some after runs that died, compared with plain sums."""
    events = []
    for number in range(100):
        usd, leg = f"{draw.randrange(10**6)}.{draw.randrange(10**9)}", draw.choice([*Leg, None])
        drawn = event(f"e{number}", draw.randrange(0, 600) / 10, usd, draw.choice([A, B, C]), leg)
        events.append(drawn if leg else replace(drawn, action=Action.BORROW))
    source = HandMade(markets_=MARKETS, events_=sorted(events, key=lambda each: each.at) + events[:30])
    minutes = draw.sample(range(61), 5)
    for place, minute in enumerate(minutes):
        if place % 4 == 0:
            first = NOON + minute * MINUTE
            backfill(JOB, source, store, multiples_between(first, first + 6 * MINUTE, MINUTE))
        elif place % 4 == 1:
            with closing(dying(settings, draw.choice(["event_version", "observation", "snapshot"]))) as broken:
                try:
                    run(source, broken, minute)
                except StoreUnavailable:
                    run(source, store, minute)
        else:
            run(source, store, minute)
    backfill(JOB, source, store, instants_to_fill(NOON, NOON + 3 * HOUR, HOUR))
    found = stored(settings)
    debts = [each for each in events if each.action is Action.LIQUIDATE and each.leg is not Leg.COLLATERAL]
    assert {(int(each.at.timestamp()), each.asset_id) for each in debts} <= {
        (second, asset_id) for second, sums in found.items() for asset_id in sums
    }
    for second, sums in found.items():
        expected = summed(events, Action.LIQUIDATE, second)
        assert sums == {asset_id: expected.get(asset_id, 0) for asset_id in sums}
    completed = begin(store, "loans", SECOND, SECOND + 7201).completed
    assert len(completed) >= 5
    for second in completed:
        loans = read_loans(store, second)
        assert without_zeros({"": loans.total, **loans.by_asset}) == summed(events, Action.BORROW, second)
