"""Every job there is."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from analytics_service.config import Settings
from analytics_service.sources.base import Source
from jobs import prices
from jobs.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Job:
    """Takes snapshots of a family of data. `collect` reads no clock; `every` answers seconds."""

    name: str
    help: str
    family: str
    collect: Callable[[Source, datetime, int], Snapshot]
    every: Callable[[Settings], int]


JOBS = {
    job.name: job
    for job in (
        Job(
            name="prices",
            help="Definitions of assets and their oracle prices.",
            family="prices",
            collect=prices.collect,
            every=lambda settings: settings.prices_every,
        ),
    )
}
