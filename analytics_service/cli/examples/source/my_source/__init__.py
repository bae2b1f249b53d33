"""A source to start from: two assets with prices from a file, a market of each, and an event a day.

Each method is asked for the state at an instant, `at`, aware and in UTC, and must give the same answer whenever it is
asked. There are further methods: ptoken, arrangements, positions and swaps. Their docstrings are in
analytics_service/sources/base.py, and the records that they return in analytics_service/market/.

A source that calls other services drops `may_hang = False` below, gives its calls time-outs of their own, raises
SourceError (of analytics_service.errors) when it cannot answer now, and takes secrets from environment variables.
"""

import csv
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.market.events import Action, Event
from analytics_service.market.markets import (
    NO_CONFIG,
    CollateralConfig,
    CollateralMarket,
    DebtConfig,
    DebtMarket,
    GlobalConfig,
    LendMarket,
    Market,
)
from analytics_service.market.prices import Price
from analytics_service.sources.base import Source

# 10^decimals_denom denom units make one standard unit. All amounts are in denom units.
ATOM = Asset(AssetGroup.NATIVE, "uatom", "Cosmos Hub", "ATOM", "uatom", decimals_denom=6, decimals_display=4)
USDT = Asset(AssetGroup.NATIVE, "uusdt", "Tether", "USDT", "uusdt", decimals_denom=6, decimals_display=2)
ASSETS = {asset.symbol: asset for asset in (ATOM, USDT)}
LAUNCH = datetime(2026, 1, 1, 6, tzinfo=UTC)
ADDRESS = "0x00000000000000000000000000000000000000a1"


class MySource(Source):
    """`mysource`, or `mysource:FILE` with a CSV file of its own: hour (UTC, 0 to 23), symbol and usd."""

    # It calls no other service.
    may_hang = False

    def __init__(self, rest: str) -> None:
        """`rest` is what follows `mysource:`. The ValueError says what it must be."""
        file = Path(rest) if rest else Path(__file__).with_name("prices.csv")
        if not file.is_file():
            raise ValueError("must be mysource, or mysource: and the path of a CSV file")
        self._rest = rest
        with file.open(encoding="utf-8", newline="") as lines:
            # Decimal from text, never from floats, which are not exact.
            self._prices = [(int(row["hour"]), row["symbol"], Decimal(row["usd"])) for row in csv.DictReader(lines)]

    @property
    def spec(self) -> str:
        """The name in --source. It is stored and shown, so it has no secrets."""
        return f"mysource:{self._rest}" if self._rest else "mysource"

    @property
    def history(self) -> timedelta:
        """`up` fills in so much history when it starts."""
        return timedelta(days=30)

    def assets(self, at: datetime) -> Sequence[Asset]:
        """Every asset."""
        return list(ASSETS.values())

    def prices(self, at: datetime) -> Sequence[Price]:
        """The price of each asset, which begins with the hour; the file's prices come again each day."""
        hour = at.replace(minute=0, second=0, microsecond=0)
        return [Price(ASSETS[symbol].id, hour, usd) for row, symbol, usd in self._prices if row == hour.hour]

    def markets(self, at: datetime) -> Sequence[Market]:
        """USDT is lent and borrowed against ATOM. Rates and ratios are fractions."""
        lend = LendMarket(apr=Decimal("0.04"), principal=1_000_000_000, receipt_supply=950_000_000)
        rules = DebtConfig(True, None, borrow_halt_utilization=Decimal("0.95"), interest_fee=Decimal("0.2"))
        debt = DebtMarket(rules, Decimal("0.09"), 500_000_000, 480_000_000, at, Decimal("0.5"))
        terms = CollateralConfig(True, Decimal("0.7"), Decimal("0.75"), None, Decimal(0), Decimal("0.1"))
        collateral = CollateralMarket(terms, balance=250_000_000, shares=250_000_000)
        return [Market(ATOM.id, None, collateral, None), Market(USDT.id, lend, None, debt)]

    def config(self, at: datetime) -> GlobalConfig:
        """The rules for all borrowing."""
        return NO_CONFIG

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        """10 USDT are borrowed each day at 6:00. The first call asks for all events since 1970, later ones for the last
        hour again: what it does not list any more leaves the store."""
        number = max(-((LAUNCH - start) // timedelta(days=1)), 0)
        events = []
        while (at := LAUNCH + timedelta(days=number)) < end:
            events.append(
                Event(
                    id=str(number),
                    action=Action.BORROW,
                    asset_id=USDT.id,
                    address=ADDRESS,
                    at=at,
                    amount=10_000_000,
                    usd=Decimal(10),
                    price=Decimal(1),
                    account_index=0,
                    tx_hash=f"{number:064X}",
                )
            )
            number += 1
        return events
