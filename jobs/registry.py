"""All jobs. Each field of `Intervals` is the interval of the job in the module of that name here.

Such a module has a docstring whose first line says what the job stores, and a function `collect` (see
snapshot.Collect). Jobs first run in the order of these fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import import_module

from analytics_service.config.parsers import Intervals
from analytics_service.config.settings import Settings
from analytics_service.sources.registry import NONE
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


def _job(name: str) -> Job:
    module = import_module(f"jobs.{name}")
    return Job(name, module.collect)


JOBS = {field.name: _job(field.name) for field in fields(Intervals)}


def intervals(settings: Settings) -> Mapping[str, int]:
    """The seconds between snapshots of each dataset. Without a source, nothing is scheduled and nothing can be late."""
    return {} if settings.source == NONE else {job.dataset: job.interval(settings) for job in JOBS.values()}
