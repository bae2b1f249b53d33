"""Sums of liquidations (the debt that they repaid) and loans are exact in whatever order snapshots are taken."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import falcon.testing

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.market.events import Action, Event, Leg
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests import clickhouse, oracle
from tests.doubles import FreshHeads
from tests.integration.handmade import FINEST, NOON, HandMade, market
from tests.stored import write_assets

JOB = JOBS["loans"]
PATH = "/api/v1/analytics/market/history/liquidations"
SECOND = int(NOON.timestamp())
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
A, B = "token;a", "token;b"
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
