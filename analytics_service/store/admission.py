"""Decides which data may join a store: simulated data is never mixed with any other (rule 8.7).

All data that is not simulated is one side; each simulated source is a side of its own. The first run that is published
claims the store for its side. The claim is a table whose comment names the side: ClickHouse creates a table only once,
so of two runs that are published at the same time only one can be the first.
"""

from dataclasses import dataclass

from analytics_service.errors import SourceRefused
from analytics_service.store.connection import Store
from analytics_service.store.ledger import IMPORTED, Origin, read_ledger

CLAIM = "store_claim"
# The space keeps it apart from specs.
_REAL = "not simulated"


@dataclass(frozen=True, slots=True)
class Holdings:
    """The origins of a store's completed runs, and the side that has claimed the store."""

    origins: frozenset[Origin]
    claimed_by: str | None = None

    @property
    def sides(self) -> frozenset[str]:
        """The sides that the store holds; once it is claimed, the one whose data may be added."""
        return frozenset([self.claimed_by]) if self.claimed_by else frozenset(map(_side, self.origins))

    @property
    def is_undecided(self) -> bool:
        """Whether the store has data of several sides, and the operator has not chosen one of them yet."""
        return len(self.sides) > 1

    @property
    def simulated_spec(self) -> str | None:
        """The only source whose data may be added, if it is a simulated one."""
        return None if self.is_undecided else next(iter(self.sides - {_REAL}), None)

    def __str__(self) -> str:
        held = sorted(str(origin) for origin in self.origins if _side(origin) in self.sides) or ["real history"]
        return self.simulated_spec or " and ".join([*filter(None, [", ".join(held[:-1])]), held[-1]])


def read_holdings(store: Store) -> Holdings:
    """What the store holds now."""
    return Holdings(read_ledger(store).origins, _claimed_by(store))


def require_admitted(store: Store, origin: Origin) -> Holdings:
    """What the store holds, if data of an origin may join it. SourceRefused says why not, and what to do."""
    holdings = read_holdings(store)
    if holdings.is_undecided:
        raise SourceRefused(how_to_decide(holdings))
    if holdings.sides - {_side(origin)}:
        raise SourceRefused(_refusal(origin, holdings))
    return holdings


def claim(store: Store, origin: Origin) -> None:
    """Claim the store for the side of an origin, if nobody has. Call it before the first row is written.

    SourceRefused when the store is another side's. A claim is never given up.
    """
    if _claimed_by(store) == _side(origin):
        return
    if require_admitted(store, origin).claimed_by is None:
        claim_for(store, _side(origin))
        require_admitted(store, origin)


def choose(store: Store, origin: Origin) -> None:
    """Settle a mixed store in favour of an origin that it has data of: from then on only that side may add. Otherwise
    do nothing."""
    origins = read_holdings(store).origins
    if origin in origins and Holdings(origins).is_undecided:
        claim_for(store, _side(origin))
        store.execute(f"ALTER TABLE {CLAIM} MODIFY COMMENT {_literal(_side(origin))}")


def claim_for(store: Store, side: str) -> None:
    """Claim a store that nobody has claimed for a side, as `Holdings.claimed_by` names it."""
    store.execute(f"CREATE TABLE IF NOT EXISTS {CLAIM} (side String) ENGINE = Memory COMMENT {_literal(side)}")


def how_to_decide(holdings: Holdings) -> str:
    """What is wrong with a mixed store, and how its operator says which side holds."""
    names = sorted(origin.spec or "none" for origin in holdings.origins)
    options = f"--source {', '.join(names[:-1])} or {names[-1]} (or ANALYTICS_SOURCE)"
    files = "; none stands for imported history" if IMPORTED in holdings.origins else ""
    return (
        f"This store holds both {holdings}, and simulated data must not be mixed with other data. "
        f"It can be read, but nothing is added until you say which of them holds: {options}{files}."
    )


def _refusal(origin: Origin, holdings: Holdings) -> str:
    reason = f"This store holds {holdings}, and simulated data is never mixed with other data. Nothing was written."
    other = "use another store: --data-dir names its folder, ANALYTICS_CLICKHOUSE_DATABASE its database on a server"
    if origin == IMPORTED:
        return f"{reason} To import, {other}."
    real = sorted(one.spec for one in holdings.origins if one.spec and not one.simulated)
    same = holdings.simulated_spec or next(iter(real), "none")
    return f"{reason} For {origin}, {other}. To go on with this one, choose --source {same}."


def _claimed_by(store: Store) -> str | None:
    claims = store.frame("store_claim", table=CLAIM)
    return str(claims["side"][0]) if claims.height else None


def _side(origin: Origin) -> str:
    return origin.spec if origin.simulated else _REAL


def _literal(text: str) -> str:
    """The text as a literal of SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
