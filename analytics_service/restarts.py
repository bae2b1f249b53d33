"""When to start a process again that ended by itself."""

from dataclasses import dataclass


@dataclass(slots=True)
class Restarts:
    """Counts starts that were short-lived, in a row. A process that lived for `lived` seconds begins a new count."""

    delays: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0, 5.0)
    lived: float = 60.0
    short: int = 0

    def next_delay(self, lifetime: float) -> float | None:
        """Seconds to wait before the next start; None when as many starts as there are delays came to nothing."""
        if lifetime >= self.lived:
            self.short = 0
        self.short += 1
        return self.delays[self.short - 1] if self.short <= len(self.delays) else None
