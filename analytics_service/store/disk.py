"""How full ClickHouse's disk is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from analytics_service.clickhouse.connection import Store
from analytics_service.market.kinds import Count

# With fewer bytes left, a large snapshot has no room, and soon nothing has.
_FULL = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk of ClickHouse; of several servers, that with the least share of free bytes. What the embedded server
    keeps free does not count."""

    free: Annotated[int, Count("Bytes that can still be written")]
    total: Annotated[int, Count("All its bytes")]

    @property
    def faults(self) -> Sequence[str]:
        """That it is full, in plain words, if it is."""
        return ["the disk of ClickHouse is full; free space on it"] if self.free < _FULL else []


def read_disk(store: Store) -> Disk | None:
    """The disk; None if no server can tell."""
    rows = store.frame("read_disk_space", store.layout.on_all_servers("disks")).rows()
    return Disk(*rows[0]) if rows else None
