"""Price files made for a test, and what becomes of their rows."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl

from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.sources.files import Names, TimeUnit, judge_table
from analytics_service.sources.tables import open_table

NOW = datetime(2025, 3, 1, 12, tzinfo=UTC)
NOON = 1_740_830_400
HEADER = "symbol,timestamp,USD_price\n"


def asset(symbol: str, key: str, decimals: int = 18) -> Asset:
    return Asset(AssetGroup.TOKEN, key, symbol, symbol, symbol.lower(), decimals, min(decimals, 6))


NAMES = Names.of([asset("AAA", "0xa"), asset("BBB", "0xb")], [])

Good = list[tuple[str, int, Decimal]]
Bad = list[tuple[int, str]]


def judge(path: Path, unit: TimeUnit = "s", names: Names = NAMES) -> tuple[Good, Bad]:
    """Good rows as (asset id, second, price) and bad ones as (number, reason)."""
    bad: list[pl.DataFrame] = []
    judged = judge_table(open_table(path), names, unit, NOW, bad.append, lambda _: None)
    good = pl.concat(judged.good).rows()
    faults = [row for block in bad for row in block.select("line", "reason").rows()]
    assert (judged.read, judged.rejected) == (len(good) + len(faults), len(faults))
    return good, faults


def written(folder: Path, text: str, name: str = "prices.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path
