"""Current state as bytes: rendered once per snapshot, kept until the next one."""

import threading
from collections.abc import Callable, Hashable


class Rendered:
    """Bodies of one state of the store. Another version drops those of the one before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current: tuple[Hashable, dict[Hashable, bytes]] = (None, {})

    def body(self, version: Hashable, variant: Hashable, render: Callable[[], bytes]) -> bytes:
        """The body of a variant (its parameters) as of a version; rendered by one thread while others wait."""
        current, bodies = self._current
        if current == version and variant in bodies:
            return bodies[variant]
        with self._lock:
            if self._current[0] != version:
                self._current = (version, {})
            bodies = self._current[1]
            if variant not in bodies:
                bodies[variant] = render()
            return bodies[variant]
