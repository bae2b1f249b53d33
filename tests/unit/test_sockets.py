"""Who has the other end of a connection within this machine."""

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from analytics_service.clickhouse.sockets import accepting_user, require_user
from analytics_service.errors import StoreUnavailable


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def test_only_the_expected_user_may_have_accepted_a_connection(listener: socket.socket) -> None:
    with socket.create_connection(listener.getsockname()) as connection:
        accepted, _ = listener.accept()
        with accepted:
            require_user(connection, os.geteuid(), 5)
            with pytest.raises(StoreUnavailable, match="A process of another user listens"):
                require_user(connection, os.geteuid() + 1, 5)


def test_nothing_is_said_of_a_connection_before_it_is_accepted(listener: socket.socket) -> None:
    with socket.create_connection(listener.getsockname()) as connection:
        with pytest.raises(TimeoutError):
            accepting_user(connection, 0.05)
        accepted: list[socket.socket] = []
        accepting = threading.Timer(0.05, lambda: accepted.append(listener.accept()[0]))
        begun = time.monotonic()
        accepting.start()
        assert accepting_user(connection, 60) == os.geteuid()
        assert time.monotonic() - begun >= 0.04
        # The connection is accepted a moment before it is in the list.
        accepting.join()
        accepted[0].close()


def test_a_connection_that_ends_before_it_is_accepted_is_an_error_at_once(listener: socket.socket) -> None:
    with socket.create_connection(listener.getsockname()) as connection:
        threading.Timer(0.05, listener.close).start()
        with pytest.raises(ConnectionResetError):
            accepting_user(connection, 60)
