"""Imports made for a test, and ways to see what they wrote into ClickHouse."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.importing.column_mapping import ColumnChoice
from analytics_service.importing.history import Loaded, load_history
from analytics_service.importing.publication import publish
from analytics_service.importing.rows import HistoryRequest
from analytics_service.importing.time_parsing import TimeRules
from analytics_service.store.datasets.histories import PRICES, History
from tests import clickhouse

NOW = datetime(2025, 3, 1, 12, tzinfo=UTC)
HEADER = "asset,time,value\n"
ASSETS = "symbol,address,decimals\nAAA,0xa,18\nBBB,0xb,6\nCCC,0xc,0\n"
IDS = ("token;0xa", "token;0xb", "token;0xc")

Row = tuple[str, int, str]
Observations = dict[tuple[str, int], Decimal]


@dataclass
class Progress:
    """A reporter that records progress, and may do something when the first batch is written."""

    at_first_batch: Callable[[], None] = lambda: None
    stages: list[tuple[str, int]] = field(default_factory=list)
    done: list[int] = field(default_factory=list)

    def stage(self, label: str, total: int) -> None:
        self.stages.append((label, total))
        self.done.append(0)

    def advance(self, count: int) -> None:
        first = self.done[-1] == 0
        self.done[-1] += count
        if first and self.stages[-1][0] == "Writing":
            self.at_first_batch()


def assets_file(folder: Path) -> Path:
    path = folder / "assets.csv"
    path.write_text(ASSETS)
    return path


def prices_file(folder: Path, rows: Sequence[Row], name: str = "prices.csv") -> Path:
    path = folder / name
    path.write_text(HEADER + "".join(f"{asset},{second},{price}\n" for asset, second, price in rows))
    return path


def asked(
    history: History, *files: Path, assets: Path | None = None, skip_invalid: bool = False, **columns: str
) -> HistoryRequest:
    """An import of files with unix times, which may be small. Of rows that disagree the later counts."""
    choice, times = ColumnChoice(**columns), TimeRules(unit="s")  # type: ignore[arg-type]
    return HistoryRequest(history, files, choice, times, assets=assets, skip_invalid=skip_invalid, last_wins=True)


def import_files(store: Store, request: HistoryRequest, at: datetime, reporter: Progress) -> Loaded:
    loaded = load_history(store, request, at, reporter)
    publish(store, loaded, reporter)
    return loaded


def counted(loaded: Loaded) -> tuple[int, ...]:
    """The rows that were read, the values that were stored, and the rows that were rejected or empty."""
    return loaded.count("read"), loaded.rows.height, loaded.count("rejected"), loaded.count("empty")


def run(store: Store, *files: Path, skip_invalid: bool = False, reporter: Progress | None = None) -> Loaded:
    """Import files with the three assets, from a file beside them."""
    request = asked(PRICES, *files, assets=assets_file(files[0].parent), skip_invalid=skip_invalid)
    return import_files(store, request, NOW, reporter or Progress())


def query(settings: Settings, sql: str) -> list[tuple[object, ...]]:
    """The rows of a query, read independently of the service's own code."""
    with clickhouse.client(settings) as client:
        return [tuple(row) for row in client.query(sql).result_rows]


def observations(settings: Settings) -> Observations:
    rows = query(settings, "SELECT asset_id, toUnixTimestamp(observed_at), value_exact FROM price")
    return {(str(asset), int(str(second))): Decimal(str(price)) for asset, second, price in rows}


# Rollups that have ended; only these are read.
ROLLUPS = """
SELECT width, asset_id, start, first_at, last_at, count, unknown, known, seconds, open, high, low, close, toString(area)
FROM rollup FINAL
WHERE history = '{history}'
  AND toUnixTimestamp(multiIf(width = '15min', start + 900, width = 'day', start + 86400, addMonths(start, 1)))
    <= (SELECT toUnixTimestamp(max(observed_at)) + 1 FROM observation WHERE history = '{history}')
ORDER BY ALL
"""
CONTENTS = {
    "prices": "SELECT asset_id, observed_at, value_exact FROM price ORDER BY ALL",
    "rollups": ROLLUPS.format(history="price"),
    "assets": "SELECT * EXCEPT version FROM asset_definition FINAL ORDER BY ALL",
    "ledger": "SELECT DISTINCT * EXCEPT (version, import_id) FROM snapshot FINAL ORDER BY ALL",
}


def contents(settings: Settings) -> dict[str, list[tuple[object, ...]]]:
    """All values of all tables except versions, which are instants of writing. Imports of the same are one."""
    return {name: query(settings, sql) for name, sql in CONTENTS.items()}


def many(count: int, years: int, seed: int) -> list[Row]:
    """Random observations over some years up to 2025, some of them for the same asset and second."""
    dice = random.Random(seed)
    end = int(NOW.timestamp())
    instants = [dice.randrange(end - years * 365 * 86_400, end) for _ in range(count)]
    return [(dice.choice(IDS), instant, f"{dice.randrange(10**12)}e-9") for instant in instants + instants[::10]]


def outcome(*imports: Sequence[Row]) -> Observations:
    """The observations that remain when each row replaces an earlier one for the same asset and second."""
    return {(asset, second): Decimal(price) for rows in imports for asset, second, price in rows}
