"""Announcements, which tell other processes of runs that are being put in place, and heartbeats of their writers."""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import polars as pl

from analytics_service.errors import AnalyticsError
from analytics_service.store.connection import Store
from analytics_service.store.retries import ONCE, Retries
from analytics_service.store.staging import Staging

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 1.0
# The tables in which runs are announced: as a rewrite of history, or as one that appends to it.
REWRITE, APPEND = "publication", "append_run"
_SCHEMA = {"family": pl.String, "version": pl.UInt64, "finished": pl.UInt8}


@dataclass(frozen=True, slots=True)
class Announcements:
    """Whether a run was announced as one that appends, and whether any of its announcements is open."""

    append: bool
    open: bool


def announcements(store: Store, staged: Staging) -> Announcements:
    """What the store knows of a run."""
    rows = store.frame("run_state", family=staged.family, version=staged.version)
    return Announcements("append" in rows["how"], 0 in rows["finished"])


@contextmanager
def announced(
    store: Store, staged: Staging, kind: str, retry: Retries = ONCE, every: float = HEARTBEAT_SECONDS
) -> Iterator[None]:
    """Announce a run as of a kind, send heartbeats during the block, and finish it. After an error it stays open."""
    stop = threading.Event()

    def send_heartbeats() -> None:
        sent = True
        while not stop.wait(every):
            try:
                tell(store, kind, [staged.family], staged.version, finished=0)
                sent = True
            except AnalyticsError as error:
                if sent:
                    log.warning("Heartbeats cannot be sent: %s", error)
                sent = False

    retry(lambda: tell(store, kind, [staged.family], staged.version, finished=0))
    heart = threading.Thread(target=send_heartbeats, name="heartbeat", daemon=True)
    heart.start()
    try:
        yield
        retry(lambda: tell(store, kind, [staged.family], staged.version, finished=1))
    finally:
        stop.set()
        heart.join()


def tell(store: Store, kind: str, families: Sequence[str], version: int, finished: int) -> None:
    """Announce a run of families as one of a kind, send its heartbeat, or finish it (rule 8.5)."""
    rows = [{"family": family, "version": version, "finished": finished} for family in families]
    store.insert(kind, pl.DataFrame(rows, schema=_SCHEMA))


def forget_finished(store: Store) -> None:
    """Drop the announcements of runs that append, and finished a day ago or earlier."""
    store.run("forget_finished")
