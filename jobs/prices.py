"""Prices: what the oracle says each asset is worth, and the definitions of the assets."""

from datetime import datetime

from analytics_service.errors import SourceError
from analytics_service.sources.base import Source
from analytics_service.store.prices import price_frame
from jobs.snapshot import Snapshot


def collect(source: Source, at: datetime, version: int) -> Snapshot:
    """The source's prices and assets as of the instant. SourceError when it quotes none."""
    prices = source.prices(at)
    if not prices:
        raise SourceError(f"{source.spec} quotes no prices as of {at:%Y-%m-%dT%H:%M:%SZ}.")
    return Snapshot(at, rows={"price": price_frame(prices, version)}, assets=source.assets(at))
