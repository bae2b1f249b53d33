"""API keys and the rate limit hold in all workers of a gunicorn. There is no store: unknown paths count, too."""

import http.client
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from analytics_service.http.api_keys import add_key, remove_key
from tests.acceptance.bare import answers, gunicorn
from tests.processes import PATIENCE, free_port, until

LIMIT = 200


def status(port: int, key: str, path: str = "/api/v1/nothing") -> int:
    """The status of a request on a new connection, which any worker may accept."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        client.request("GET", path, headers={"Authorization": f"Bearer {key}"})
        return client.getresponse().status
    finally:
        client.close()


def test_a_limit_and_changes_of_keys_hold_over_all_workers(tmp_path: Path) -> None:
    port, file = free_port(), tmp_path / "keys.txt"
    alice = add_key(file, "alice")
    settings = {"ANALYTICS_API_KEYS_FILE": str(file), "ANALYTICS_RATE_LIMIT": f"{LIMIT}/86400"}
    with gunicorn(tmp_path, port, "workers = 2\n", **settings):
        until(lambda: answers(port))
        with ThreadPoolExecutor(8) as pool:
            statuses = Counter(pool.map(lambda _: status(port, alice), range(2 * LIMIT)))
        assert statuses == {404: LIMIT, 429: LIMIT}
        assert status(port, alice, "/healthz") == 200

        bob = add_key(file, "bob")
        # A guess counts for the address; the limit is not reached in the second that a worker may take.
        until(lambda: {status(port, bob) for _ in range(4)} == {404}, every=0.2)
        remove_key(file, "bob")
        until(lambda: not {status(port, bob) for _ in range(4)} & {404}, every=0.2)
