"""API keys hold in all workers of the HTTP service, as they were when it started or was reloaded well."""

import http.client
import signal
from pathlib import Path

from analytics_service.http.api_keys import add_key, remove_key
from tests.acceptance.conftest import Service
from tests.processes import PATIENCE, until


def status(bind: str, key: str) -> int:
    """The status of a request on a new connection, which any worker may accept; 0 if nobody answers."""
    client = http.client.HTTPConnection(bind, timeout=PATIENCE)
    try:
        client.request("GET", "/api/v1/assets", headers={"Authorization": f"Bearer {key}"})
        return client.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        client.close()


def test_changed_keys_are_taken_into_use_at_hup(service: Service, own: Service, tmp_path: Path) -> None:
    other = Service(service.data_dir, started=own.started)
    other.environ["ANALYTICS_API_KEYS_FILE"] = str(file := tmp_path / "keys.txt")
    alice = add_key(file, "alice")
    process = other.serve()
    until(lambda: status(other.bind, alice) == 200)
    remove_key(file, "alice")
    bob = add_key(file, "bob")
    assert [status(other.bind, key) for key in (alice, bob) * 4] == [200, 401] * 4
    process.send_signal(signal.SIGHUP)
    until(lambda: [status(other.bind, key) for key in (alice, bob) * 4] == [401, 200] * 4)
    # A new service could not start with this.
    file.write_text("malformed")
    process.send_signal(signal.SIGHUP)
    other.says(process, "The running gunicorn continues.")
    assert status(other.bind, bob) == 200
