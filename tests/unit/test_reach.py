"""What is said of a server that does not answer."""

import ssl
from http.client import BadStatusLine, RemoteDisconnected

import pytest
import urllib3

from analytics_service.clickhouse.client import cause_of


def test_a_certificate_that_is_refused_is_told_with_the_reason() -> None:
    refused = ssl.SSLCertVerificationError(1, "certificate verify failed")
    refused.verify_message = "self-signed certificate"
    told = cause_of(urllib3.exceptions.SSLError(refused))
    assert told == (
        "its certificate is refused: self-signed certificate; "
        "set SSL_CERT_FILE to the certificate of the authority that signed it"
    )


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
