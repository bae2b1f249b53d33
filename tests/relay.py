"""Something that stands between a store and its server, and can hang for this store alone."""

import socket
import threading
from contextlib import suppress

from analytics_service.config.settings import Settings


class Relay:
    """Passes bytes between its port and a server's, unless it `hangs`: then it takes them and passes nothing."""

    def __init__(self, server: Settings) -> None:
        self.hangs = threading.Event()
        self._port = int(str(server.clickhouse_url).rpartition(":")[2])
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> "Relay":
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        # It may be opening a connection just now, which is to be closed, too.
        self._accepting.join()
        self._listening.close()
        self.drop()

    def drop(self) -> None:
        """Close all connections."""
        for connection in self._sockets:
            # Closing alone wakes no thread that reads from it.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            self._sockets.append(client)
            server = socket.create_connection(("127.0.0.1", self._port))
            self._sockets.append(server)
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                if not self.hangs.is_set():
                    target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)
        except OSError:
            return
