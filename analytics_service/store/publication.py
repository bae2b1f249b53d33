"""How a run rewrites history that readers already see: it says so first, so that nobody reads half of it.

Readers look at the ledger, and at what is announced here, once a second (heads.py), and again after a read that took so
long that a run might have announced itself and begun in the meantime: a read is safe when less than NOTICE has passed
since the look before it. A run is taken for dead when nothing was heard of it for a minute (publications.sql); what
it left then counts as another state, so that no cache mixes it with the one before.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

import polars as pl

from analytics_service.errors import StoreUnavailable
from analytics_service.store.connection import Store
from analytics_service.store.ledger import read_heads

log = logging.getLogger(__name__)

# Seconds between a run's announcement and its first change.
NOTICE = 1.25
_SCHEMA = {"family": pl.String, "version": pl.UInt64, "finished": pl.UInt8}

_T = TypeVar("_T")


class Patient(Protocol):
    """Acts, and may do so again when that fails because ClickHouse is away."""

    def __call__(self, act: Callable[[], _T], /) -> _T:
        """What the act answers in the end."""


def _at_once(act: Callable[[], _T], /) -> _T:
    return act()


@contextmanager
def publication(
    store: Store, family: str, first_observed_at: int | None, version: int, patient: Patient = _at_once
) -> Iterator[Callable[[], None]]:
    """Within this a run puts its rows into the family's tables and completes; what it yields tells that it still lives.

    `first_observed_at` is its oldest observation. A run that only adds to the end of history needs no announcement and
    does not wait; None says that it may take long enough for others to add to the end before. A run that failed is run
    again to end in the same state as an undisturbed one; until then readers see what it has changed.
    """
    head = patient(lambda: read_heads(store).get(family))
    if head is None or (first_observed_at is not None and first_observed_at > head.last_observed_at):
        yield lambda: None
        return

    def announce() -> None:
        _tell(store, family, version, finished=0)

    patient(announce)
    try:
        store.pause(NOTICE)
    except BaseException:
        # Nothing has changed yet, so nobody needs to wait.
        _tell(store, family, version, finished=1)
        raise
    yield announce
    try:
        patient(lambda: _tell(store, family, version, finished=1))
    except StoreUnavailable as error:
        log.warning("The run is complete, but readers may wait for it for a minute: %s", error)


def _tell(store: Store, family: str, version: int, finished: int) -> None:
    row = {"family": family, "version": version, "finished": finished}
    store.insert("publication", pl.DataFrame([row], schema=_SCHEMA))
