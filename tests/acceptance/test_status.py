"""`status` as an operator meets it."""

import json
import urllib.request

import pytest

from tests.acceptance.conftest import Service, stop
from tests.processes import PATIENCE, until


def test_every_part_of_a_running_service_is_reported(service: Service) -> None:
    code, output = 1, ""

    def tells_of_a_scheduler() -> bool:
        nonlocal code, output
        code, output = service.done("status", "--json")
        return "no scheduler is running" not in output

    # It may be the last to begin.
    until(tells_of_a_scheduler)
    assert code == 0, output
    document = json.loads(output)
    assert document["healthy"] is True
    assert document["store"]["reachable"] is True
    assert any(scheduler["alive"] for scheduler in document["schedulers"])
    snapshots = {one["dataset"]: one for one in document["snapshots"]}
    assert (snapshots["prices"]["interval_seconds"], snapshots["prices"]["last_error"]) == (60, "")


def test_a_service_that_does_not_answer_is_a_problem(service: Service) -> None:
    code, output = service.done_here("status", "--bind", "127.0.0.1:1")
    assert code == 1
    assert "Problem     the HTTP service does not answer on 127.0.0.1:1" in output
    # The output goes to no terminal.
    assert "\033" not in output


@pytest.mark.slow
def test_a_service_without_a_schedule_is_well_although_its_store_had_one(own: Service) -> None:
    """`status` need not be told what `up` was told; /operations says the same. All that `up` prints is JSON,
    from the first line on."""
    code, output = own.done("jobs", "once", "prices")
    assert code == 0, output
    own.source, own.environ = "none", {"ANALYTICS_LOG_FORMAT": "json"}
    process = own.up()
    own.source = None
    code, output = own.done("status", "--json")
    assert code == 0, output
    document = json.loads(output)
    assert {one["interval_seconds"] for one in document["snapshots"]} == {None}
    with urllib.request.urlopen(f"http://{own.metrics_bind}/operations", timeout=PATIENCE) as response:
        assert json.load(response)["data"]["healthy"] is True
    assert stop(process) == 0
    assert {type(json.loads(line)) for line in own.printed().splitlines()} == {dict}
