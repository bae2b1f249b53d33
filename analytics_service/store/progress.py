"""How a long operation reports its progress."""

from typing import Protocol


class Reporter(Protocol):
    """Shows the progress of a long operation."""

    def stage(self, label: str, total: int) -> None:
        """A stage of `total` units begins."""

    def advance(self, count: int) -> None:
        """Another `count` units of the stage are done."""
