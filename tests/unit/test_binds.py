"""Which paths are on which of the two binds, and the URLs at which this machine reaches them."""

import socket
import stat
import threading
from contextlib import closing
from pathlib import Path

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.config.settings import Settings
from analytics_service.errors import SettingError
from analytics_service.server.address import connected, listen, local_url, release, require_free
from tests.doubles import LOCAL
from tests.processes import free_port


class Accepted:
    """A connection as gunicorn passes it on: it knows at which address it was accepted."""

    def __init__(self, address: object) -> None:
        self._address = address

    def getsockname(self) -> object:
        return self._address


MAIN, OPERATORS = ("127.0.0.1", 8000), ("127.0.0.1", 8001)
BOTH = ("/healthz", "/readyz")


@pytest.fixture(scope="module")
def client() -> falcon.testing.TestClient:
    return falcon.testing.TestClient(create_app(Settings(clickhouse_url="http://127.0.0.1:1")))


def kind(client: falcon.testing.TestClient, path: str, address: object, **headers: str) -> str | None:
    """The kind of error that a path answers to a request which arrived at an address; None without an error."""
    extras = {"gunicorn.socket": Accepted(address)} if address else {}
    answer = client.simulate_get(path, extras=extras, headers={**LOCAL, **headers})
    is_json = answer.headers["content-type"] == "application/json"
    error = answer.json["error"] if is_json and "error" in answer.json else None
    return error["kind"] if error else None


@pytest.mark.parametrize("path", ["/docs", "/api/v1/assets", "/api/v1/status/health", "/api/v1/openapi.json", "/x"])
def test_operators_bind_has_probes_and_metrics_only(client: falcon.testing.TestClient, path: str) -> None:
    assert kind(client, path, OPERATORS) == "path_unknown"
    assert kind(client, "/metrics", OPERATORS) is None
    assert [kind(client, probe, OPERATORS) for probe in BOTH] == [None, "unavailable"]


def test_an_unknown_path_on_the_operators_bind_names_those_that_there_are(client: falcon.testing.TestClient) -> None:
    """/docs, which lists the paths of the main bind, is not among them."""
    answer = client.simulate_get("/docs", extras={"gunicorn.socket": Accepted(OPERATORS)}, headers=LOCAL)
    assert answer.json["error"]["message"] == (
        "There is nothing at /docs; the paths here are /healthz, /metrics, /operations, /readyz."
    )


@pytest.mark.parametrize(
    ("host", "refused"),
    [
        ("localhost:8001", None),
        ("127.0.0.1:8001", None),
        ("[::1]:8001", None),
        # Prometheus asks other machines by address or by name.
        ("192.0.2.7", None),
        (socket.gethostname().upper(), None),
        ("metrics.internal:8001", None),
        ("rebound.example:8001", "request_malformed"),
        ("localhost.rebound.example", "request_malformed"),
        ("127.0.0.1.rebound.example", "request_malformed"),
    ],
)
def test_the_operators_bind_answers_to_addresses_and_to_names_of_this_machine(host: str, refused: str | None) -> None:
    """A page of another name, which leads here, is not what asks for /operations."""
    settings = Settings(clickhouse_url="http://127.0.0.1:1", metrics_bind="metrics.internal:8001")
    client = falcon.testing.TestClient(create_app(settings))
    assert kind(client, "/metrics", OPERATORS, Host=host) == refused
    assert kind(client, "/healthz", OPERATORS, Host=host) == refused
    assert kind(client, "/healthz", MAIN, Host=host) is None


def test_a_unix_socket_may_be_the_operators_bind_and_answers_to_any_name() -> None:
    """No name leads there, and a proxy may pass its own on."""
    settings = Settings(metrics_bind="unix:/run/ops.sock", clickhouse_url="http://127.0.0.1:1")
    client = falcon.testing.TestClient(create_app(settings))
    assert kind(client, "/metrics", "/run/ops.sock", Host="operators.example") is None
    assert [kind(client, "/metrics", address) for address in ("/run/http.sock", MAIN)] == ["path_unknown"] * 2


@pytest.mark.parametrize("address", [None, "/run/service.sock", ("::", 8000, 0, 0)])
def test_no_header_leads_to_the_metrics(client: falcon.testing.TestClient, address: object) -> None:
    """Neither where the server does not say at which port a request arrived, nor behind a Unix socket."""
    assert kind(client, "/metrics", address, Host="127.0.0.1:8001") == "path_unknown"


def test_without_the_bind_there_are_no_metrics() -> None:
    client = falcon.testing.TestClient(create_app(Settings(metrics_bind="none", clickhouse_url="http://127.0.0.1:1")))
    assert kind(client, "/metrics", OPERATORS) == "path_unknown"


@pytest.mark.parametrize(
    ("bind", "url"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("0.0.0.0:8000", "http://127.0.0.1:8000"),
        ("[::]:8000", "http://[::1]:8000"),
        ("[fd00::2]:8000", "http://[fd00::2]:8000"),
        ("unix:/run/http.sock", "http://localhost"),
    ],
)
def test_the_url_of_a_bind_is_one_at_which_this_machine_reaches_it(bind: str, url: str) -> None:
    assert local_url(bind) == url


def test_an_address_that_no_interface_has_is_refused_with_one_that_any_machine_has() -> None:
    with pytest.raises(SettingError) as refused:
        require_free(Settings(bind="192.0.2.1:8000", metrics_bind="none"))
    assert str(refused.value) == (
        "Nothing can listen on 192.0.2.1:8000: Cannot assign requested address. "
        "Name an address of this machine, such as --bind 127.0.0.1:8000."
    )


@pytest.mark.parametrize(("port", "other"), [(65525, 65535), (65526, 65516), (65535, 65525)])
def test_near_the_last_port_a_lower_one_is_named(port: int, other: int) -> None:
    """Not one that needs privileges."""
    with socket.create_server(("127.0.0.9", port)), pytest.raises(SettingError) as refused:
        require_free(Settings(bind=f"127.0.0.9:{port}", metrics_bind="none"), patience=0)
    assert str(refused.value).endswith(f"or name another port, such as --bind 127.0.0.9:{other}.")


def test_a_port_that_is_taken_is_refused_with_another_one_at_the_same_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(SettingError) as refused:
            require_free(Settings(metrics_bind=f"127.0.0.1:{port}", bind=f"127.0.0.1:{free_port()}"), patience=0)
    message = str(refused.value)
    assert message.startswith(f"Nothing can listen on 127.0.0.1:{port}: Address already in use. Stop what uses it,")
    assert "such as ANALYTICS_METRICS_BIND=127.0.0.1:" in message


def test_an_address_that_a_killed_service_is_about_to_leave_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        leaving = threading.Timer(0.3, listener.close)
        leaving.start()
        require_free(Settings(bind=f"127.0.0.1:{listener.getsockname()[1]}", metrics_bind="none"), patience=60)
        leaving.join()


def test_a_unix_socket_is_for_its_owner_and_group_and_goes_with_the_service(tmp_path: Path) -> None:
    """One that a killed process has left behind is replaced."""
    path = tmp_path / "http.sock"
    settings = Settings(bind=f"unix:{path}", metrics_bind="none")
    listen(settings.bind, settings).close()
    require_free(settings)
    listener = listen(settings.bind, settings)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    with closing(connected(settings.bind, 1)), pytest.raises(SettingError) as refused:
        require_free(settings, patience=0)
    assert str(refused.value) == (
        f"Nothing can listen on {settings.bind}: Address already in use. "
        "Stop what uses it, or name another path, in a folder of this user, with --bind."
    )
    release(listener)
    assert not path.exists()


def test_a_file_at_the_path_of_a_unix_socket_stays(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(SettingError, match="Address already in use"):
        require_free(Settings(bind=f"unix:{path}", metrics_bind="none"), patience=0)
    assert path.read_text() == "mine"
