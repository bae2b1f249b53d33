"""Decides when a process that has ended by itself is restarted."""

from dataclasses import dataclass


@dataclass(slots=True)
class Restarts:
    """Counts consecutive short-lived starts. A process that ran for `long_lived` seconds resets the count."""

    delays: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
    long_lived: float = 60.0
    short_lived_starts: int = 0

    def next_delay(self, lifetime: float) -> float:
        """Seconds to wait before the next start. They grow with each short-lived start, up to the last delay."""
        if lifetime >= self.long_lived:
            self.short_lived_starts = 0
        self.short_lived_starts += 1
        return self.delays[min(self.short_lived_starts, len(self.delays)) - 1]
