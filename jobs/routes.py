"""Routes: what each swap contract can swap to what."""

from datetime import datetime

from analytics_service.sources.base import Source
from analytics_service.store.swaps import route_frame
from jobs.snapshot import Snapshot


def collect(source: Source, at: datetime, version: int) -> Snapshot:
    """The routes of all swap contracts as of the instant; a protocol without such contracts has none."""
    return Snapshot(at, rows={"swap_route": route_frame(source.swaps(at), at, version)})
