"""What is said and remembered of a server that does not answer."""

import ssl
from http.client import BadStatusLine, RemoteDisconnected

import pytest
import urllib3

from analytics_service.errors import StoreUnavailable
from analytics_service.store.reach import Pulse, cause_of
from tests.processes import until


class Server:
    """It answers unless it is silent."""

    def __init__(self) -> None:
        self.silent = False
        self.asked = 0

    def ask(self, seconds: float) -> None:
        self.asked += 1
        if self.silent:
            raise StoreUnavailable("It does not answer.")


def test_a_server_that_does_not_answer_is_away_until_it_does() -> None:
    server, cuts = Server(), []
    pulse = Pulse(server.ask, on_silence=lambda: cuts.append(server.asked))
    pulse.require()
    for server.silent, expected in [(False, []), (True, [2]), (True, [2, 3]), (False, [2, 3])]:
        pulse.beat()
        assert cuts == expected
        if server.silent:
            with pytest.raises(StoreUnavailable, match="It does not answer"):
                pulse.require()
        else:
            pulse.require()


def test_a_thread_asks_until_it_is_stopped_and_then_nothing_is_known() -> None:
    server = Server()
    server.silent = True
    pulse = Pulse(server.ask, on_silence=lambda: None)
    pulse.start()
    pulse.start()
    until(lambda: server.asked >= 1 and away(pulse))
    pulse.stop()
    until(lambda: not away(pulse))


def away(pulse: Pulse) -> bool:
    """Whether the server is known not to answer."""
    try:
        pulse.require()
    except StoreUnavailable:
        return True
    return False


def test_a_certificate_that_is_refused_is_told_with_the_reason() -> None:
    refused = ssl.SSLCertVerificationError(1, "certificate verify failed")
    refused.verify_message = "self-signed certificate"
    told = cause_of(urllib3.exceptions.SSLError(refused))
    assert told == "its certificate is refused: self-signed certificate"


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        (RemoteDisconnected("Remote end closed connection without response"), "it closed the connection"),
        (ConnectionResetError(104, "Connection reset by peer"), "it closed the connection"),
        (BadStatusLine("\x15\x03\x01"), "it does not answer in HTTP; perhaps it expects https"),
    ],
)
def test_a_server_that_closes_the_connection_is_told_from_one_that_expects_https(reason: Exception, cause: str) -> None:
    assert cause_of(urllib3.exceptions.ProtocolError("Connection aborted.", reason)) == cause
