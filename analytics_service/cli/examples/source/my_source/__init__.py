"""A source to start from: two assets with prices from a file, a market for each, and an event a day.

Each method returns the state at an instant `at`, which is aware and in UTC. It must always return the same state for
an instant. analytics_service/sources/base.py describes all methods, among them ptoken, arrangements, positions and
swaps, and analytics_service/market/ the records that they return.

If your source calls other services, drop `may_hang = False` below, set time-outs on the calls, raise
analytics_service.errors.SourceError when it cannot answer now, and read secrets from environment variables.
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
    """`mysource`, or `mysource:FILE` with your own CSV file of hour (UTC, 0 to 23), symbol and usd."""

    # It calls no other service.
    may_hang = False

    def __init__(self, rest: str) -> None:
        """`rest` follows `mysource:`. The message of a ValueError says what is allowed."""
        file = Path(rest) if rest else Path(__file__).with_name("prices.csv")
        if not file.is_file():
            raise ValueError("must be mysource, or mysource: followed by the path of a CSV file")
        self._rest = rest
        with file.open(encoding="utf-8", newline="") as lines:
            # Decimal from text, never from floats, which are not exact.
            self._prices = [(int(row["hour"]), row["symbol"], Decimal(row["usd"])) for row in csv.DictReader(lines)]

    @property
    def spec(self) -> str:
        """The name in --source. It is stored and shown, so keep secrets out of it."""
        return f"mysource:{self._rest}" if self._rest else "mysource"

    @property
    def history(self) -> timedelta:
        """How much history `up` fills in when it starts."""
        return timedelta(days=30)

    def assets(self, at: datetime) -> Sequence[Asset]:
        return list(ASSETS.values())

    def prices(self, at: datetime) -> Sequence[Price]:
        """The price of each asset, observed at the start of the hour. The prices of the file repeat each day."""
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
        return NO_CONFIG

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        """A loan of 10 USDT each day at 6:00. The first call asks for all events since 1970, later calls for the last
        hour again; stored events that are no longer listed are removed."""
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
