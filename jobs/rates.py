"""Rates: what lenders earn and borrowers owe, asset by asset."""

from datetime import datetime

from analytics_service.errors import SourceError
from analytics_service.sources.base import Source
from analytics_service.store.rates import rate_frames
from jobs.snapshot import Snapshot


def collect(source: Source, at: datetime, version: int) -> Snapshot:
    """The rates of the source's markets as of the instant. SourceError when it has no markets."""
    markets = source.markets(at)
    if not markets:
        raise SourceError(f"{source.spec} has no markets as of {at:%Y-%m-%dT%H:%M:%SZ}.")
    return Snapshot(at, rows=rate_frames(markets, at, version))
