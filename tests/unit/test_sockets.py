"""Who has the other end of a connection within this machine."""

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from analytics_service.store.sockets import other_end


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def test_the_other_end_of_an_accepted_connection_is_open_in_the_process_that_accepted_it(
    listener: socket.socket,
) -> None:
    with socket.create_connection(listener.getsockname()) as connection:
        accepted, _ = listener.accept()
        with accepted:
            end = other_end(connection, 5)
            assert end.uid == os.geteuid()
            assert end.inode == os.fstat(accepted.fileno()).st_ino
            assert end.is_open_in(os.getpid())
            assert not end.is_open_in(os.getppid())
            # No process has this id: Linux counts up to 2^22.
            assert not end.is_open_in(2**22 + 1)


def test_nothing_is_said_of_a_connection_before_it_is_accepted(listener: socket.socket) -> None:
    with socket.create_connection(listener.getsockname()) as connection:
        with pytest.raises(TimeoutError):
            other_end(connection, 0.05)
        accepted: list[socket.socket] = []
        accepting = threading.Timer(0.05, lambda: accepted.append(listener.accept()[0]))
        begun = time.monotonic()
        accepting.start()
        end = other_end(connection, 60)
        assert time.monotonic() - begun >= 0.04
        # The connection is accepted a moment before it is in the list.
        accepting.join()
        assert end.inode == os.fstat(accepted[0].fileno()).st_ino
        accepted[0].close()


def test_a_connection_that_ends_before_it_is_accepted_is_an_error_at_once(listener: socket.socket) -> None:
    with socket.create_connection(listener.getsockname()) as connection:
        threading.Timer(0.05, listener.close).start()
        with pytest.raises(ConnectionResetError):
            other_end(connection, 60)
