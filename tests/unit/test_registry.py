"""Jobs are found by the names of their interval settings."""

from pathlib import Path

import jobs
from analytics_service.config.settings import Settings
from jobs.registry import JOBS


def test_every_module_that_collects_is_a_job() -> None:
    modules = Path(jobs.__file__).parent.glob("*.py")
    assert {path.stem for path in modules if "\ndef collect(" in path.read_text("utf-8")} == set(JOBS)


def test_jobs_first_run_in_the_order_of_their_settings() -> None:
    """Values are computed from prices, so prices come first."""
    assert list(JOBS) == ["prices", "rates", "markets", "loans", "ptoken", "positions", "routes"]


def test_a_job_has_its_interval_from_its_setting() -> None:
    job = JOBS["rates"]
    assert (job.interval(Settings(rates_every=17)), job.family) == (17, "rates")
    assert [job.name for job in JOBS.values() if not job.history] == ["positions"]
