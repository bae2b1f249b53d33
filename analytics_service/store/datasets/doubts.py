"""Values in doubt (rule 8.18): those that are found are stored with the run that wrote them."""

from collections.abc import Sequence

import polars as pl

from analytics_service.clickhouse.columns import encoded_records
from analytics_service.market.doubts import Doubt
from analytics_service.market.fields import columns_of

DOUBTS = "doubt"
_COLUMNS = columns_of(Doubt)


def doubt_frame(doubts: Sequence[Doubt]) -> pl.DataFrame:
    """Doubts as a batch for the table DOUBTS, without `version`."""
    return encoded_records(doubts, _COLUMNS)
