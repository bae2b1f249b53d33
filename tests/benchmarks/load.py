"""Load on an HTTP server: `python -m tests.benchmarks.load HOST PORT CONNECTIONS SECONDS < paths`.

Requests the paths, one per line, in turns over kept-alive connections, and prints the number of answers and of seconds.
It only looks for the end of each answer, to leave the processor to a server on the same machine.
"""

import itertools
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

CONNECTIONS = 32
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_OK = b"HTTP/1.1 200"


def load(url: str, paths: Sequence[str], seconds: float, connections: int = CONNECTIONS) -> tuple[int, float]:
    """How many answers a separate process gets from a server in about so many seconds, and the exact seconds."""
    server = urlsplit(url)
    words = [sys.executable, "-m", __name__, str(server.hostname), str(server.port), str(connections), str(seconds)]
    said = subprocess.run(words, input="\n".join(paths), text=True, check=True, stdout=subprocess.PIPE).stdout.split()
    return int(said[0]), float(said[1])


class Caller:
    """A connection with one request under way. It is opened again when the server closes it, as happens sometimes."""

    def __init__(self, address: tuple[str, int], requests: Iterator[bytes], ready: select.epoll) -> None:
        self._address = address
        self._requests = requests
        self._ready = ready
        # Bytes of an answer that are still to come; none before it begins.
        self._missing = 0
        self._open()

    def descriptor(self) -> int:
        """That of its socket."""
        return self._socket.fileno()

    def receive(self, buffer: bytearray) -> bool:
        """Receive; return whether an answer is complete, after sending the next request."""
        try:
            count = self._socket.recv_into(buffer)
        except ConnectionError:
            count = 0
        if count == 0:
            self._socket.close()
            self._open()
            return False
        self._missing = self._missing - count if self._missing else _rest(buffer, count)
        if self._missing:
            return False
        self._ask()
        return True

    def _open(self) -> None:
        self._socket = socket.create_connection(self._address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ready.register(self._socket, select.EPOLLIN)
        self._ask()

    def _ask(self) -> None:
        self._missing = 0
        try:
            self._socket.sendall(next(self._requests))
        except ConnectionError:
            # The server has closed it; the next receive sees that.
            return


def _rest(buffer: bytearray, count: int) -> int:
    """How many bytes of an answer are still missing. RuntimeError when it is not a 200 with a length."""
    head = buffer.find(b"\r\n\r\n", 0, count)
    length = _LENGTH.search(buffer, 0, head + 2) if head >= 0 else None
    if length is None or not buffer.startswith(_OK):
        raise RuntimeError(f"The server answered {bytes(buffer[: min(count, 300)])!r}.")
    return head + 4 + int(length[1]) - count


def main() -> None:
    """Send requests until the time is over, then print answers and seconds."""
    host, port, connections, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    requests = [f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() for path in sys.stdin.read().split()]
    in_turns = itertools.cycle(requests)
    buffer = bytearray(1 << 18)
    ready = select.epoll()
    callers: dict[int, Caller] = {}
    for _ in range(connections):
        caller = Caller((host, port), in_turns, ready)
        callers[caller.descriptor()] = caller
    answers, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        for descriptor, _ in ready.poll(1):
            caller = callers.pop(descriptor)
            answers += caller.receive(buffer)
            callers[caller.descriptor()] = caller
    print(answers, time.perf_counter() - begun)


if __name__ == "__main__":
    main()
