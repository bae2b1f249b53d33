"""Price files made for a test, and how their rows are validated."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl

from analytics_service.imports.families import PRICES
from analytics_service.imports.forms import FormTable, recognized
from analytics_service.imports.opening import open_table
from analytics_service.imports.validation import Names, Rules, TimeUnit, ValidatedFile, validate_file
from analytics_service.market.assets import Asset, AssetGroup

NOW = datetime(2025, 3, 1, 12, tzinfo=UTC)
NOON = 1_740_830_400
HEADER = "symbol,timestamp,USD_price\n"


def asset(symbol: str, key: str, decimals: int = 18) -> Asset:
    return Asset(AssetGroup.TOKEN, key, symbol, symbol, symbol.lower(), decimals, min(decimals, 6))


NAMES = Names.of([asset("AAA", "0xa"), asset("BBB", "0xb")], [])

Good = list[tuple[str, int, Decimal]]
Bad = list[tuple[int, str]]


def opened(path: Path) -> FormTable:
    return recognized(open_table(path), PRICES.forms)


def validated(
    table: FormTable, reject: Callable[[pl.DataFrame], None], advance: Callable[[int], None] = lambda _: None
) -> ValidatedFile:
    return validate_file(table, Rules(NAMES, "s", NOW), reject, advance)


def judge(path: Path, unit: TimeUnit = "s", names: Names = NAMES) -> tuple[Good, Bad]:
    """Good rows as (asset id, second, price) and bad ones as (number, reason)."""
    bad: list[pl.DataFrame] = []
    file = validate_file(opened(path), Rules(names, unit, NOW), bad.append, lambda _: None)
    good = pl.concat(file.good).rows()
    faults = [row for block in bad for row in block.select("line", "reason").rows()]
    assert (file.read, file.rejected) == (len(good) + len(faults), len(faults))
    return good, faults


def written(folder: Path, text: str, name: str = "prices.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path
