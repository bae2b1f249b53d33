"""What operators see of a running service, on a bind of its own."""

import os
import re
import signal
from pathlib import Path

from tests.acceptance.bare import answers, gunicorn
from tests.acceptance.conftest import Service
from tests.processes import PATIENCE, children, free_port, until

_COUNT = 'analytics_request_seconds_count{route="%s",status="%s"}'


def test_the_workers_metrics_add_up(service: Service) -> None:
    """Each request has a connection of its own, so both workers answer some. Any of them may be asked for the sums."""
    asked = {("/api/v1/assets", 200): 40, ("/healthz", 200): 7, ("/api/v1/assets/prices", 400): 3, ("unknown", 404): 2}
    paths = {"/api/v1/assets/prices": "/api/v1/assets/prices?a=1", "unknown": "/nothing"}
    before = service.metrics()
    for (route, status), times in asked.items():
        for _ in range(times):
            assert service.get(paths.get(route, route))[0] == status
    for _ in range(5):
        now = service.metrics()
        grown = {key: now[_COUNT % key] - before.get(_COUNT % key, 0) for key in asked}
        assert grown == asked
    cached = [f'analytics_cache_answers_total{{outcome="{outcome}"}}' for outcome in ("hit", "miss")]
    assert sum(now.get(name, 0) - before.get(name, 0) for name in cached) == 40


def test_metrics_tell_of_memory_queries_jobs_and_the_build(service: Service) -> None:
    for path in ("/api/v1/assets", "/api/v1/assets/price-history?start=now-1d&end=now&period=h"):
        assert service.get(path)[0] == 200
    metrics: dict[str, float] = {}

    def has_gaps() -> bool:
        """Each of the workers reads them in its own time."""
        metrics.update(service.metrics())
        return 'analytics_history_gaps{dataset="prices"}' in metrics

    until(has_gaps)
    assert metrics["analytics_store_up"] == 1
    until(lambda: service.metrics()['analytics_memory_bytes{kind="history"}'] > 0)
    assert metrics['analytics_memory_bytes{kind="answers"}'] > 0
    assert metrics['analytics_store_query_seconds_count{query="read_ledger"}'] > 0
    assert metrics['analytics_history_gaps{dataset="prices"}'] >= 0
    assert any(name.startswith("analytics_build_info{") and 'source="recent:7"' in name for name in metrics)
    # The scheduler is another process. Its first run is that of the present minute, which `up` may have taken before.
    runs = [f'analytics_job_runs_total{{job="prices",outcome="{outcome}"}}' for outcome in ("done", "already_done")]
    until(lambda: any(service.metrics().get(name) for name in runs))


def test_requests_that_cannot_be_read_are_counted(service: Service) -> None:
    name = 'analytics_unreadable_requests_total{kind="uri_too_long"}'
    before = service.metrics().get(name, 0)
    assert service.get("/" + "a" * 9000)[0] == 414
    assert service.metrics()[name] == before + 1


def files_of(worker: int) -> set[Path]:
    """The files that a worker writes its metrics to."""
    return {Path(name) for name in re.findall(r"\S+\.db$", Path(f"/proc/{worker}/maps").read_text("ascii"), re.M)}


def test_a_new_worker_goes_on_with_the_files_of_one_that_was_killed_and_none_outlive_gunicorn(tmp_path: Path) -> None:
    port = free_port()
    with gunicorn(tmp_path, port, ANALYTICS_METRICS_BIND=f"127.0.0.1:{free_port()}") as process:
        until(lambda: answers(port))
        (killed,) = children(process.pid)
        until(lambda: files_of(killed))
        files = files_of(killed)
        os.kill(killed, signal.SIGKILL)
        until(lambda: children(process.pid) not in ({killed}, set()) and answers(port))
        (other,) = children(process.pid)
        until(lambda: files_of(other) == files)
        process.terminate()
        assert process.wait(PATIENCE) == 0
    assert not any(file.parent.exists() for file in files)
