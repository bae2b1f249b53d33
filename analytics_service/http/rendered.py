"""Current state as bytes: rendered once per snapshot, kept until the next one."""

import threading
from collections.abc import Callable, Hashable

from analytics_service.store.ledger import Head


class Rendered:
    """Bodies of one snapshot. A new head's version drops those of the one before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current: tuple[int, dict[Hashable, bytes]] = (-1, {})

    def body(self, head: Head, variant: Hashable, render: Callable[[], bytes]) -> bytes:
        """The body of a variant (its flags) as of a head; rendered by one thread while others wait."""
        version, bodies = self._current
        if version == head.version and variant in bodies:
            return bodies[variant]
        with self._lock:
            if self._current[0] != head.version:
                self._current = (head.version, {})
            bodies = self._current[1]
            if variant not in bodies:
                bodies[variant] = render()
            return bodies[variant]
