"""Progress bars on the terminal."""

from contextlib import ExitStack
from typing import Any

import click


def progress_bar(label: str, total: int, items: str) -> Any:
    """A progress bar that also shows its rate. It is updated with a number of items, twice."""

    def rate(count: int | None) -> str | None:
        seconds = bar.time_per_iteration
        return f"{1 / seconds:,.1f} {items}/s" if count and seconds else None

    bar = click.progressbar(length=total, label=label, item_show_func=rate)
    return bar


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
