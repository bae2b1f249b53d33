"""Swap contracts and their routes in the store."""

from collections.abc import Iterable

from analytics_service.market.fields import columns_of
from analytics_service.market.kinds import Text, Texts
from analytics_service.market.positions import SwapContract
from analytics_service.store.connection import Store
from analytics_service.store.snapshot_table import SnapshotRows, SnapshotTable

ROUTES = SnapshotTable(
    "swap_route",
    "routes",
    {
        **columns_of(SwapContract),
        "source": Text("Denom to swap from; empty in the only row of a contract without routes"),
        "targets": Texts("Denoms that it can be swapped to"),
    },
    ("contract", "source"),
)
# The source in the single row of a contract without routes.
_NO_SOURCE = ""


def route_rows(contracts: Iterable[SwapContract]) -> SnapshotRows:
    """A snapshot's rows: a row for each contract and source denom."""
    rows = [
        {"contract": contract.address, "source": source, "targets": targets}
        for contract in contracts
        for source, targets in (contract.routes or {_NO_SOURCE: ()}).items()
    ]
    return {ROUTES: rows}


def read_contract(store: Store, address: str, at: int) -> SwapContract | None:
    """The swap contract of a (lower-case) address at a snapshot (unix second of a head of family routes).

    Its sources are in ascending order, and so are the targets of each. None when there is no such contract.
    """
    rows = list(ROUTES.read(store, at, "contract = {contract:String}", contract=address))
    if not rows:
        return None
    routes = {row["source"]: tuple(sorted(row["targets"])) for row in rows if row["source"] != _NO_SOURCE}
    return SwapContract(address, routes)


def read_example_contract(store: Store, at: int) -> str | None:
    """A swap contract that has routes at a snapshot; None when there is none."""
    rows = store.frame("example_contract", at=at)
    return None if rows.is_empty() else str(rows["contract"][0])
