"""Swap contracts and their routes, as of snapshots."""

from collections.abc import Iterable
from datetime import datetime

import polars as pl

from analytics_service.market.positions import SwapContract
from analytics_service.store.columns import TEXT, Column, Columns, snapshot_frame
from analytics_service.store.connection import Store

_ROUTE: Columns = {"contract": TEXT, "source": TEXT, "targets": Column(pl.List(pl.String), list)}
# The source of the one row of a contract that has no routes: it exists all the same.
_NO_SOURCE = ""


def route_frame(contracts: Iterable[SwapContract], at: datetime, version: int) -> pl.DataFrame:
    """A snapshot's rows, one for each contract and source denom."""
    rows = [
        {"contract": contract.address.lower(), "source": source, "targets": targets}
        for contract in contracts
        for source, targets in (contract.routes or {_NO_SOURCE: ()}).items()
    ]
    return snapshot_frame(rows, _ROUTE, at, version)


def read_contract(store: Store, address: str, at: int) -> SwapContract | None:
    """A swap contract of a snapshot (unix second of a head of family routes), routes by source; None when it is none.

    The address is in lower case.
    """
    rows = store.frame("swap_routes", contract=address, at=at).rows(named=True)
    if not rows:
        return None
    return SwapContract(address, {row["source"]: tuple(row["targets"]) for row in rows if row["source"] != _NO_SOURCE})
