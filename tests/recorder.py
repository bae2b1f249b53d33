"""Another user who has taken a port: accepts connections and keeps all that is sent. Only root can be another user."""

import ctypes
import socket
import threading
from contextlib import suppress

# A user that exists on no machine.
_UID = 54321


class Recorder(threading.Thread):
    """Listens on a port of 127.0.0.1, as soon as the server that was killed there has left it."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.accepted = 0
        self.received = b""
        self._stopped = threading.Event()
        self._listening = _listening(port)

    def run(self) -> None:
        """Accept connections one after the other, and read from each until it ends."""
        # Sockets that this thread makes or accepts from now on belong to that user (setfsuid(2)).
        ctypes.CDLL(None).setfsuid(_UID)
        with self._listening:
            while not self._stopped.is_set():
                with suppress(TimeoutError):
                    connection, _ = self._listening.accept()
                    self.accepted += 1
                    with connection, suppress(OSError):
                        connection.settimeout(5)
                        while part := connection.recv(65536):
                            self.received += part

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def _listening(port: int) -> socket.socket:
    while True:
        with suppress(OSError):
            listening = socket.create_server(("127.0.0.1", port))
            listening.settimeout(0.1)
            return listening
