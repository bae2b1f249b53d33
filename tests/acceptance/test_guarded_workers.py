"""API keys and the rate limit hold in all workers of a gunicorn. There is no store: unknown paths count, too."""

import http.client
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from analytics_service.http.api_keys import add_key, remove_key
from tests.acceptance.bare import answers, gunicorn
from tests.processes import PATIENCE, free_port, until

LIMIT = 200
WORKERS = "workers = 2\n"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of keys."""
    return tmp_path_factory.mktemp("keys") / "keys.txt"


@pytest.fixture(scope="module")
def alice(file: Path) -> str:
    """A key that is there from the start."""
    return add_key(file, "alice")


@pytest.fixture(scope="module")
def port(file: Path, alice: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a gunicorn with two workers, keys, and a limit of 200 requests in a day."""
    port = free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANALYTICS_API_KEYS_FILE", str(file))
        patch.setenv("ANALYTICS_RATE_LIMIT", f"{LIMIT}/86400")
        with gunicorn(tmp_path_factory.mktemp("guarded"), port, WORKERS):
            until(lambda: answers(port))
            yield port


def status(port: int, key: str, path: str = "/api/v1/nothing") -> int:
    """The status of a request on a new connection, which any worker may accept."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        client.request("GET", path, headers={"Authorization": f"Bearer {key}"})
        return client.getresponse().status
    finally:
        client.close()


def test_a_limit_holds_over_all_workers(port: int, alice: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        statuses = Counter(pool.map(lambda _: status(port, alice), range(2 * LIMIT)))
    assert statuses == {404: LIMIT, 429: LIMIT}
    assert status(port, alice, "/healthz") == 200


def test_keys_are_added_and_removed_while_workers_run(port: int, file: Path) -> None:
    bob = add_key(file, "bob")
    # A guess counts for the address; the limit is not reached in the second that a worker may take.
    until(lambda: {status(port, bob) for _ in range(4)} == {404})
    remove_key(file, "bob")
    until(lambda: not {status(port, bob) for _ in range(4)} & {404})
