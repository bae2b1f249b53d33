"""What `source check` finds by queries on its scratch store."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.market.markets import CollateralMarket, Market
from analytics_service.market.positions import Balance, Position
from analytics_service.market.prices import Price
from analytics_service.sources.base import Source
from analytics_service.sources.simulated.source import SimulatedSource
from jobs.check import Finding, Plan, check
from tests.unit.test_source_check import (
    ATOM,
    CAROL,
    DEBT,
    EVENTS,
    HOUR,
    LEND,
    NOW,
    RECEIPT,
    TERMS,
    USDT,
    Sound,
    expect,
)

pytestmark = pytest.mark.usefixtures("views")
NAKED, STALE = (replace(USDT, group_key=name, symbol=name, symbol_denom=name) for name in ("naked", "stale"))


class Suspicious(Sound):
    """Values that can be stored and cannot be true: an asset with a factor for its decimals, a price that jumps and one
    that is old, and a market with a debt that has no price."""

    def prices(self, at: datetime) -> Sequence[Price]:
        usdt = Decimal(1050000000 if at == NOW else 10500000)
        return [Price(USDT.id, at, usdt), Price(STALE.id, NOW - 26 * HOUR, Decimal(1))]


def found(source: Source, store: Store) -> list[str]:
    """What a check finds, each once."""
    steps = check(source, store, Plan(NOW))
    return list(dict.fromkeys(f"{step.level}: {step.message}" for step in steps if isinstance(step, Finding)))


def test_what_cannot_be_true_is_said(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.check._AGO", (HOUR, timedelta()))
    source = Suspicious(
        assets_=(replace(ATOM, decimals_denom=40), USDT, RECEIPT, NAKED, STALE),
        markets_=(
            Market(ATOM.id, None, CollateralMarket(replace(TERMS, liquidation_ltv=Decimal(80)), 5, 5), None),
            Market(USDT.id, replace(LEND, principal=4), None, DEBT),
            Market(NAKED.id, LEND, None, DEBT),
        ),
        events_=(replace(EVENTS[0], usd=Decimal(7)), replace(EVENTS[1], usd=None)),
        # BOB has all 900 receipt tokens, and CAROL another 100 in a wallet.
        positions_=(*Sound().positions_, Position(CAROL, wallet=(Balance(RECEIPT.id, 10**8),))),
    )
    expect(
        found(source, store),
        [
            "warning: assets: more than 36 decimals_denom: ATOM (native;uatom).",
            "note: prices: assets without a price, and therefore without values: ATOM (native;uatom), naked",
            "warning: prices: a day old or older: stale (token;stale) 2026-02-28T10:00:00Z.",
            "warning: prices: very low or very high: USDT (token;0xdac) 1050000000.",
            "warning: suspicious: jump of price USDT at 2026-03-01T12:00:00Z: 1.05e+09 after 1.05e+07",
            "warning: markets: above 1, which is 100 %: liquidation_ltv of ATOM (native;uatom) 80.",
            "warning: markets: hardly anything in them: ATOM (native;uatom).",
            "warning: markets: more debt than lend principal: USDT (token;0xdac).",
            "warning: markets: debt in assets without a price: naked (token;naked).",
            "warning: positions: more than the market has: ",
            "warning: positions: less than the market has: ",
            "warning: events: usd is not amount times price: borrow at 2026-02-12T20:00:00Z 7 instead of 1.",
            "warning: events: without usd, so they count in no sum: borrow at 2026-02-28T06:00:00Z.",
        ],
    )


def test_there_is_nothing_to_say_of_the_simulated_source(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.check._AGO", (timedelta(),))
    assert found(SimulatedSource("1"), store) == []
