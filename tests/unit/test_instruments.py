"""What is measured of requests, queries, memory and jobs, in one process and in several."""

from pathlib import Path

import falcon.testing
import pytest
from prometheus_client import CollectorRegistry, values

from analytics_service.app import create_app
from analytics_service.config.settings import Settings
from analytics_service.http.errors import OWN_REQUEST
from analytics_service.http.instruments import FOLDER, JOBS_FOLDER, WRITER, Instruments
from tests.doubles import LOCAL
from tests.samples import samples

NOWHERE = Settings(clickhouse_url="http://127.0.0.1:1")


class Service:
    def __init__(self) -> None:
        app = create_app(NOWHERE)
        self.main = falcon.testing.TestClient(app)
        self.operators = falcon.testing.TestClient(app.operators, headers=LOCAL)

    def metrics(self) -> dict[str, float]:
        return samples(self.operators.simulate_get("/metrics").text)


def measured(instruments: Instruments) -> dict[str, float]:
    registry = CollectorRegistry()
    for collector in instruments.collectors():
        registry.register(collector)
    return {
        sample.name + "".join(f",{value}" for _, value in sorted(sample.labels.items())): sample.value
        for metric in registry.collect()
        for sample in metric.samples
    }


def test_bytes_are_those_that_are_sent() -> None:
    service = Service()
    plain = service.main.simulate_get("/docs", headers={"Accept-Encoding": "identity"})
    coded = service.main.simulate_get("/docs", headers={"Accept-Encoding": "gzip"})
    service.main.simulate_head("/docs")
    service.main.simulate_get("/docs", headers={"If-None-Match": "*"})
    expected = len(plain.content) + int(coded.headers["content-length"])
    assert service.metrics()['analytics_response_bytes_total{route="/docs"}'] == expected


def test_requests_that_a_worker_sends_to_itself_do_not_count() -> None:
    service = Service()
    service.main.simulate_get("/healthz", extras={OWN_REQUEST: "1"})
    assert not [name for name in service.metrics() if "/healthz" in name]


@pytest.fixture
def several_processes(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """What other tests measure stays in this process."""
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    return monkeypatch


def writer(patch: pytest.MonkeyPatch, folder: Path, name: str) -> Instruments:
    """The instruments of a process that writes to a folder under a name."""
    patch.setenv(FOLDER, str(folder))
    patch.setenv(WRITER, name)
    return Instruments()


def test_the_scheduler_has_a_folder_of_its_own(several_processes: pytest.MonkeyPatch, tmp_path: Path) -> None:
    workers, jobs = tmp_path / "workers", tmp_path / "jobs"
    workers.mkdir()
    jobs.mkdir()
    scheduler = writer(several_processes, jobs, "scheduler")
    scheduler.job("prices", "done", 1.0)
    several_processes.setenv(JOBS_FOLDER, str(jobs))
    assert measured(writer(several_processes, workers, "0"))["analytics_job_runs_total,prices,done"] == 1
