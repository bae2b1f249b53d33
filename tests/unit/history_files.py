"""Files of histories made for a test, and what an import reads in them."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from analytics_service.importing.column_mapping import ColumnChoice
from analytics_service.importing.history import Loaded, load_history
from analytics_service.importing.rows import HistoryRequest
from analytics_service.importing.time_parsing import TimeRules
from analytics_service.importing.timestamps import Timestamps
from analytics_service.store.datasets.histories import PRICES
from tests.doubles import Silent

AT = datetime(2026, 10, 1, tzinfo=UTC)
Rows = list[tuple[str, str, Decimal]]


def loaded(*paths: Path, **options: Any) -> Loaded:
    """The content of files of prices, for an empty store, with new assets. Options are those of the command."""
    groups: dict[str, Any] = {"choice": ColumnChoice(), "times": TimeRules(), "stamps": Timestamps()}
    for group, record in groups.items():
        own = {name: options.pop(name) for name in [*options] if name in record.__slots__}
        groups[group] = replace(record, **own)
    request = HistoryRequest(**{"history": PRICES, "files": paths, "new_assets": True, **groups, **options})
    return load_history(None, request, AT, Silent())


def rows_of(content: Loaded) -> Rows:
    """The rows as they will be stored: key of the asset, instant and value."""
    shown = content.rows["observed_at"].cast(int)
    times = [datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S") for second in shown]
    keys = [str(asset).partition(";")[2] for asset in content.rows["asset"]]
    return list(zip(keys, times, content.rows["value"], strict=True))


def written(folder: Path, content: str | bytes, name: str = "file.csv") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
