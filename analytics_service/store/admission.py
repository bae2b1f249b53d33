"""Decides which data may join a store: simulated data is never mixed with any other (rule 8.7).

All data that is not simulated is one side; each simulated source is a side of its own. The first run claims the store
for its side, before its first row is written; runs of other sides are refused.
"""

from analytics_service.errors import SourceRefused
from analytics_service.store.connection import Store
from analytics_service.store.ledger import IMPORTED, Origin, newest_source

_REAL = "not simulated"
"""The side of all data that is not simulated. The space keeps it apart from specs of sources."""


def read_side(store: Store) -> str | None:
    """The side that has claimed the store, if there is one."""
    claims = store.frame("claim")["side"]
    return str(claims[0]) if len(claims) else None


def simulated_spec(side: str | None) -> str | None:
    """The simulated source of a side; None for a side that is not simulated, and for none."""
    return None if side == _REAL else side


def require_admitted(store: Store, origin: Origin) -> None:
    """SourceRefused, with what to do, when data of an origin must not join the store."""
    _require(store, read_side(store), origin)


def claim(store: Store, side: str | None, origin: Origin) -> None:
    """Claim the store for the side of an origin, if nobody has; `side` is the one that was found there. Call it before
    the first row is written. SourceRefused when the store is another side's. A claim is never given up."""
    if side is None:
        # Of claims that come at the same moment, ClickHouse takes the first.
        store.run("make_claim", side=_side(origin))
        side = read_side(store)
    _require(store, side, origin)


def _require(store: Store, side: str | None, origin: Origin) -> None:
    if side is None or side == _side(origin):
        return
    own = simulated_spec(side)
    source = own or newest_source(store)
    held, same = source or "imported history", source or "none"
    other = "use another store: --data-dir names its folder, ANALYTICS_CLICKHOUSE_DATABASE its database on a server"
    reason = f"This store holds {held}, and simulated data is never mixed with other data. Nothing was written."
    if origin == IMPORTED:
        raise SourceRefused(f"{reason} To import, {other}.")
    raise SourceRefused(f"{reason} For {origin}, {other}. To go on with this one, choose --source {same}.")


def _side(origin: Origin) -> str:
    return origin.spec if origin.simulated else _REAL
