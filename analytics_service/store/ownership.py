"""Decides which data may join a store (rule 8.7): simulated data is never mixed with any other, and all snapshots are
of one source until another replaces it.

All data that is not simulated forms one side; each simulated source is a side of its own. The first run claims the
store for its side, and the first of a source for that source, before it writes a row; runs of others are refused.
"""

import re
from contextlib import suppress
from dataclasses import dataclass

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import without_credentials
from analytics_service.errors import SchemaError, SourceRefused
from analytics_service.store.ledger import IMPORTED, Origin

_ANOTHER = "use another store: --data-dir names its folder, ANALYTICS_CLICKHOUSE_DATABASE its database on a server"
_REAL = "not simulated"
"""The side of all data that is not simulated."""
MADE_UP = "made up once more by "
"""The side of simulated data is this and the spec. The simulations before wrote other words, or the spec alone."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Whose data a store takes: that of a side, None before the first run, and of the source with a spec, empty before
    its first run. `made` is the instant of the claim, unix microseconds."""

    side: str | None = None
    source: str = ""
    made: int = 0


def read_claim(store: Store) -> Claim:
    """The claim that holds."""
    claims = store.frame("read_owner")
    return Claim(*claims.row(0)) if claims.height else Claim()


def simulated_spec(side: str | None) -> str | None:
    """The simulated source of a side, if any. SourceRefused for an earlier simulation, which cannot be continued."""
    if side is None or side == _REAL:
        return None
    if not side.startswith(MADE_UP):
        raise SourceRefused(
            f"This store holds {side.rpartition(' ')[2]} of an earlier version, which made up other data and is not "
            f"continued. Nothing was changed. To begin anew, {_ANOTHER}. With an embedded ClickHouse, "
            "`up --replace-source` deletes the old data and begins anew, too."
        )
    return side.removeprefix(MADE_UP)


def require_continued(store: Store) -> None:
    """SourceRefused if the store holds data of an earlier simulation. Works before its schema is brought up to date."""
    # Without the table there is no data of a simulation.
    with suppress(SchemaError):
        simulated_spec(read_claim(store).side)


def remembered(claimed: Claim) -> str | None:
    """The spec of the store's source, if it has one."""
    return claimed.source or simulated_spec(claimed.side)


def is_same(spec: str, other: str | None) -> bool:
    """Whether two specs name one source: they may differ in credentials and in a slash at the end."""
    return other is not None and _identity(spec) == _identity(other)


def require_admitted(store: Store, origin: Origin, *, replace: bool = False) -> None:
    """SourceRefused when data of an origin must not join the store. With `replace`, its source is the store's own from
    now on, if the side allows it."""
    claimed = read_claim(store)
    if claimed.side is not None:
        _require(claimed, origin, replace=replace)
        if replace:
            _claimed(store, claimed, origin)


def claim(store: Store, claimed: Claim, origin: Origin) -> None:
    """Claim the store for the side and the source of an origin, unless it is claimed; `claimed` is the claim that was
    read. Call it before the first row is written. SourceRefused when another has the store. A side is never given up.
    """
    if claimed.side is not None:
        _require(claimed, origin)
    if claimed.side is None or (origin.spec and not claimed.source):
        _require(_claimed(store, claimed, origin), origin)


def _claimed(store: Store, before: Claim, origin: Origin) -> Claim:
    """The claim that holds once one was made in place of another. Of simultaneous ones, ClickHouse keeps the first.

    It may still know of one that it has lost on a full disk, and drop all others. Without a window it forgets that."""
    claim = _written(store, before, origin)
    if claim == before:
        for window in (0, 100):
            store.execute(f"ALTER TABLE claim MODIFY SETTING non_replicated_deduplication_window = {window}")
        claim = _written(store, before, origin)
    return claim


def _written(store: Store, before: Claim, origin: Origin) -> Claim:
    token = f"claim {before.made}"
    store.run("insert_owner", side=_side(origin), source=origin.spec, after=before.made, token=token)
    return read_claim(store)


def _require(claimed: Claim, origin: Origin, *, replace: bool = False) -> None:
    source, own = remembered(claimed), simulated_spec(claimed.side)
    held, named = _shown(source or "imported history"), _shown(str(origin))
    if origin.simulated != (own is not None) or (own and not is_same(origin.spec, own)):
        reason = f"This store holds {held}, and simulated data is never mixed with other data. Nothing was written."
        if origin == IMPORTED:
            raise SourceRefused(f"{reason} To import, {_ANOTHER}.")
        if is_same(origin.spec, source):
            now = "now says that its data is simulated" if origin.simulated else "no longer says that its data is"
            raise SourceRefused(f"{named} {now}. {reason} To follow it, {_ANOTHER}.")
        same = held if source else "none"
        raise SourceRefused(f"{reason} For {named}, {_ANOTHER}. To go on with this one, choose --source {same}.")
    if origin.spec and source and not (replace or is_same(origin.spec, source)):
        raise SourceRefused(
            f"The source of this store is {held}, not {named}. Nothing was written. To keep what is there and go on "
            f"with {named}, give --replace-source once to `jobs once` or `up`."
        )


def _side(origin: Origin) -> str:
    return f"{MADE_UP}{origin.spec}" if origin.simulated else _REAL


def _identity(spec: str) -> str:
    """What a spec has in common with all that name the same source."""
    name, _, rest = spec.partition(":")
    return f"{name}:{re.sub(r'^(.*@|([a-z]+:)?//)', '', rest, flags=re.DOTALL)}".rstrip("/")


def _shown(spec: str) -> str:
    """A spec with *** for credentials."""
    name, colon, rest = spec.partition(":")
    return f"{name}{colon}{without_credentials(rest)}"
