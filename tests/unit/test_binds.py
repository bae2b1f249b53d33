"""Which paths are on which of the two binds, and the URLs at which this machine reaches them."""

import socket
import stat
import threading
from pathlib import Path

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.config.settings import Settings
from analytics_service.errors import SettingError
from analytics_service.server.address import connect_to, is_bound
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


@pytest.mark.parametrize("option", ["--bind", "ANALYTICS_METRICS_BIND"])
def test_an_address_that_is_taken_is_refused_and_the_other_one_is_free_again(option: str) -> None:
    free = f"127.0.0.1:{free_port()}"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = f"127.0.0.1:{listener.getsockname()[1]}"
        binds = (taken, free) if option == "--bind" else (free, taken)
        refused = refusal(Settings(bind=binds[0], metrics_bind=binds[1]))
    assert refused == (
        f"Nothing can listen on {taken}: Address already in use. "
        f"Stop what uses it, or name another address with {option}."
    )
    with is_bound(Settings(bind=free, metrics_bind=taken), patience=0) as sockets:
        assert [listener.getsockname()[1] for listener in sockets] == [int(bind[10:]) for bind in (free, taken)]


def refusal(settings: Settings) -> str:
    """What is said when addresses cannot be bound."""
    with pytest.raises(SettingError) as refused, is_bound(settings, patience=0):
        pass
    return str(refused.value)


def test_an_address_that_a_killed_service_is_about_to_leave_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        leaving = threading.Timer(0.3, listener.close)
        leaving.start()
        with is_bound(Settings(bind=f"127.0.0.1:{listener.getsockname()[1]}", metrics_bind="none"), patience=60):
            leaving.join()


def test_a_unix_socket_is_for_its_owner_and_group_and_goes_with_the_service(tmp_path: Path) -> None:
    """One that a killed process has left behind is replaced."""
    path = tmp_path / "http.sock"
    settings = Settings(bind=f"unix:{path}", metrics_bind="none")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with is_bound(settings) as (listener,):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        listener.listen()
        connect_to(settings.bind, 1).close()
        assert "Address already in use" in refusal(settings)
        assert path.exists()
    assert not path.exists()


def test_a_file_at_the_path_of_a_unix_socket_stays(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    assert "Address already in use" in refusal(Settings(bind=f"unix:{path}", metrics_bind="none"))
    assert path.read_text() == "mine"
