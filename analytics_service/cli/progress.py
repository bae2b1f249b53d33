"""Progress bars on the terminal."""

from contextlib import ExitStack
from typing import Any

import click


class ProgressBars:
    """Shows each stage of a long operation as a progress bar."""

    def __init__(self) -> None:
        self._stage = ExitStack()
        self._bar: Any = None

    def stage(self, label: str, total: int) -> None:
        self._stage.close()
        self._bar = self._stage.enter_context(click.progressbar(length=total, label=label))

    def advance(self, count: int) -> None:
        self._bar.update(count)

    def close(self) -> None:
        self._stage.close()
