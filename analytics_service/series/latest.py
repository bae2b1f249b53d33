"""The last value of each series as of an instant."""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal

from analytics_service.series.rows import History, read_last_before
from analytics_service.store.connection import Store


def latest(store: Store, history: History, ids: Sequence[str], at: int) -> dict[str, tuple[Decimal, datetime]]:
    """Value and instant of the last observation at or before a second, by id in the order of `ids`; ids without one
    are left out."""
    rows = read_last_before(store, history, ids, at + 1).sort("series")
    columns = rows.select("series", "value", "observed_at").iter_rows()
    return {ids[series]: (Decimal(value), datetime.fromtimestamp(second, UTC)) for series, value, second in columns}
