"""The protocol token: its parameters, state, staking pools and unlock arrangements."""

from datetime import datetime

from analytics_service.sources.base import Source
from analytics_service.store.ptoken import ptoken_frames
from jobs.snapshot import Snapshot


def collect(source: Source, at: datetime, version: int) -> Snapshot:
    """The protocol token and all unlock arrangements as of the instant."""
    return Snapshot(at, rows=ptoken_frames(source.ptoken(at), source.arrangements(at), at, version))
