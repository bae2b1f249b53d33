"""The jobs. Each setting <name>_every, in the order of config.py, is the interval of the job in the module jobs.<name>.

Such a module has a docstring that says what the job stores, a function `collect` (see snapshot.Collect), and HISTORY:
whether the past can be added, too. Jobs run for the first time in the order of the settings.
"""

from dataclasses import dataclass, fields
from importlib import import_module

from analytics_service.config import Settings
from jobs.snapshot import Collect

_INTERVAL = "_every"


@dataclass(frozen=True, slots=True)
class Job:
    """Takes snapshots of a family of data, which has the job's name. `history` says whether the past can be added."""

    name: str
    help: str
    collect: Collect
    history: bool

    @property
    def family(self) -> str:
        """The family of data, as the ledger calls it."""
        return self.name

    def every(self, settings: Settings) -> int:
        """Seconds between snapshots."""
        return int(getattr(settings, self.name + _INTERVAL))


def _job(name: str) -> Job:
    module = import_module(f"jobs.{name}")
    return Job(name, module.__doc__ or "", module.collect, module.HISTORY)


JOBS = {
    job.name: job
    for job in (
        _job(field.name.removesuffix(_INTERVAL)) for field in fields(Settings) if field.name.endswith(_INTERVAL)
    )
}
