"""Files of histories made for a test, and what an import reads in them."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from analytics_service.imports.history_files import Loaded, load_history
from analytics_service.imports.layout import ColumnChoice
from analytics_service.imports.numerals import NumberRules
from analytics_service.imports.presets import preset_of
from analytics_service.imports.reading import HistoryRequest
from analytics_service.imports.tables import TableRules
from analytics_service.imports.times import TimeRules
from analytics_service.store.datasets import histories
from analytics_service.store.datasets.histories import History
from tests.doubles import Silent

AT = datetime(2026, 10, 1, tzinfo=UTC)
HEADER = "time,symbol,price\n"
BY_NAME, BY_SIZE, AS_WRITTEN = ColumnChoice(), TimeRules(), NumberRules()
IN_UTC = TimeRules(zone="UTC")
AS_FOUND = TableRules()

Rows = list[tuple[str, int, Decimal]]


def loaded(
    *paths: Path,
    history: History = histories.PRICES,
    choice: ColumnChoice = BY_NAME,
    times: TimeRules = BY_SIZE,
    numbers: NumberRules = AS_WRITTEN,
    fraction: bool = False,
    tables: TableRules = AS_FOUND,
) -> Loaded:
    """The content of files, for an empty store, with new assets."""
    request = HistoryRequest(
        preset_of(history), paths, choice, times, numbers, fraction, new_assets=True, tables=tables
    )
    return load_history(None, request, AT, Silent(), keep_rejected=False)


def rows_of(content: Loaded) -> Rows:
    """The rows as they will be stored: asset id, second and value."""
    return [(str(asset), second, value) for asset, second, value in content.rows.iter_rows()]


def written(folder: Path, content: str | bytes, name: str = "file.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
