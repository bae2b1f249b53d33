"""All jobs, in the order in which they first run. `Intervals` in config/parsers.py has the default seconds of each."""

from collections.abc import Mapping
from dataclasses import dataclass

from analytics_service.config.settings import Settings
from analytics_service.sources.registry import NONE
from jobs import loans, markets, positions, prices, ptoken, rates, routes
from jobs.snapshot import Collect


@dataclass(frozen=True, slots=True)
class Job:
    """Takes snapshots of a dataset."""

    name: str
    collect: Collect

    @property
    def dataset(self) -> str:
        """The dataset in the ledger, which has the name of the job."""
        return self.name

    def interval(self, settings: Settings) -> int:
        """Seconds between snapshots."""
        return int(getattr(settings.every, self.name))


JOBS = {
    job.name: job
    for job in (
        Job("prices", prices.collect),
        Job("rates", rates.collect),
        Job("markets", markets.collect),
        Job("loans", loans.collect),
        Job("ptoken", ptoken.collect),
        Job("positions", positions.collect),
        Job("routes", routes.collect),
    )
}


def intervals(settings: Settings) -> Mapping[str, int]:
    """The seconds between snapshots of each dataset. Without a source, nothing is scheduled and nothing can be late."""
    return {} if settings.source == NONE else {job.dataset: job.interval(settings) for job in JOBS.values()}
