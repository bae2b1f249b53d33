"""Decides which data may join a store: simulated data is never mixed with any other (rule 8.7).

All data that is not simulated forms one side; each simulated source is a side of its own. The first run claims the
store for its side before it writes a row; runs of other sides are refused.
"""

from analytics_service.errors import SourceRefused
from analytics_service.store.connection import Store
from analytics_service.store.ledger import IMPORTED, Origin, newest_source

_ANOTHER = "use another store: --data-dir names its folder, ANALYTICS_CLICKHOUSE_DATABASE its database on a server"
_REAL = "not simulated"
"""The side of all data that is not simulated."""
MADE_UP = "made up again by "
"""The side of simulated data is this and the spec. The simulations before wrote other words, or the spec alone."""


def read_side(store: Store) -> str | None:
    """The side that has claimed the store, if any."""
    claims = store.frame("claim")["side"]
    return str(claims[0]) if len(claims) else None


def simulated_spec(side: str | None) -> str | None:
    """The simulated source of a side, if any. SourceRefused for an earlier simulation, which cannot be continued."""
    if side is None or side == _REAL:
        return None
    if not side.startswith(MADE_UP):
        raise SourceRefused(
            f"This store holds {side.rpartition(' ')[2]} of an earlier version, which made up other data and is not "
            f"continued. {_ANOTHER[0].upper()}{_ANOTHER[1:]}. Nothing of value is lost with the old one."
        )
    return side.removeprefix(MADE_UP)


def require_admitted(store: Store, origin: Origin) -> None:
    """SourceRefused when data of an origin must not join the store."""
    _require(store, read_side(store), origin)


def claim(store: Store, side: str | None, origin: Origin) -> None:
    """Claim the store for the side of an origin, unless it is claimed; `side` is the side that was read. Call it before
    the first row is written. SourceRefused when another side has the store. A claim is never given up."""
    if side is None:
        side = _claimed(store, origin) or _claimed_anew(store, origin)
    _require(store, side, origin)


def _claimed(store: Store, origin: Origin) -> str | None:
    # Of simultaneous claims, ClickHouse keeps the first.
    store.run("make_claim", side=_side(origin))
    return read_side(store)


def _claimed_anew(store: Store, origin: Origin) -> str | None:
    """ClickHouse still knows of a first claim that it has lost on a full disk, and drops all others. Without a window
    it forgets that."""
    for window in (0, 100):
        store.execute(f"ALTER TABLE claim MODIFY SETTING non_replicated_deduplication_window = {window}")
    return _claimed(store, origin)


def _require(store: Store, side: str | None, origin: Origin) -> None:
    if side is None or side == _side(origin):
        return
    own = simulated_spec(side)
    source = own or newest_source(store)
    held, same = source or "imported history", source or "none"
    reason = f"This store holds {held}, and simulated data is never mixed with other data. Nothing was written."
    if origin == IMPORTED:
        raise SourceRefused(f"{reason} To import, {_ANOTHER}.")
    raise SourceRefused(f"{reason} For {origin}, {_ANOTHER}. To go on with this one, choose --source {same}.")


def _side(origin: Origin) -> str:
    return f"{MADE_UP}{origin.spec}" if origin.simulated else _REAL
