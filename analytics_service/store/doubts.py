"""Values in doubt (rule 8.18): those that are found are stored with the run that wrote them."""

from collections.abc import Sequence

import polars as pl

from analytics_service.market.doubts import Doubt
from analytics_service.market.fields import columns_of, record_of
from analytics_service.store.columns import decoded, encoded_records
from analytics_service.store.connection import Store

DOUBTS = "doubt"
_COLUMNS = columns_of(Doubt)


def doubt_frame(doubts: Sequence[Doubt]) -> pl.DataFrame:
    """Doubts as a batch for the table DOUBTS, without `version`."""
    return encoded_records(doubts, _COLUMNS)


def read_doubts(store: Store, since: int) -> list[Doubt]:
    """The values since a unix second that are in doubt and were not corrected, the newest first."""
    rows = store.frame("anomalies", time=str(since)).iter_rows(named=True)
    return [record_of(Doubt, decoded(row, _COLUMNS), symbol=row["symbol"]) for row in rows]
