"""What commands say when they are stopped, by Ctrl-C or SIGTERM."""

from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def explained(outcome: str) -> Iterator[None]:
    """Tell whoever stops the block what becomes of it."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        click.echo(f"\n{outcome}", err=True)
        raise
