"""Decides which data may join a store (rule 8.7): simulated data is never mixed with any other, and all snapshots are
of one source until another replaces it.

All data that is not simulated has one owner; each simulated source is an owner of its own. The first run makes its
owner that of the store, and the first of a source makes the source the store's, before it writes a row; runs of others
are refused.
"""

import re
from contextlib import suppress
from dataclasses import dataclass

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import without_credentials
from analytics_service.errors import SchemaError, SourceMismatch
from analytics_service.store.ledger import IMPORTED, Origin

_ANOTHER = "use another store: --data-dir names its folder, ANALYTICS_CLICKHOUSE_DATABASE its database on a server"
_REAL = "not simulated"
"""The name of the owner of a store without simulated data."""
MADE_UP = "simulated by "
"""The name of the owner of simulated data is this and the spec. Earlier simulations have other words, or none."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose data a store takes: its name is that of a simulated source or _REAL, None before the first run. `source` is
    the spec of the source of its jobs, empty before their first run. `claimed_at` is in unix microseconds."""

    name: str | None = None
    source: str = ""
    claimed_at: int = 0


def read_owner(store: Store) -> Owner:
    """The owner of the store."""
    owners = store.query("read_owner")
    return Owner(*owners.row(0)) if owners.height else Owner()


def simulated_spec(name: str | None) -> str | None:
    """The simulated source of an owner with this name, if any. SourceRefused for an earlier simulation, which cannot be
    continued."""
    if name is None or name == _REAL:
        return None
    if not name.startswith(MADE_UP):
        raise SourceMismatch(
            f"This store holds {name.rpartition(' ')[2]} of an earlier version, which made up other data and is not "
            f"continued. Nothing was changed. To begin anew, {_ANOTHER}. With an embedded ClickHouse, "
            "`up --replace-source` deletes the old data and begins anew, too."
        )
    return name.removeprefix(MADE_UP)


def require_continued(store: Store) -> None:
    """SourceRefused if the store holds data of an earlier simulation. Works before its schema is brought up to date."""
    # Without the table there is no data of a simulation.
    with suppress(SchemaError):
        simulated_spec(read_owner(store).name)


def remembered_source(owner: Owner) -> str | None:
    """The spec of the store's source, if it has one."""
    return owner.source or simulated_spec(owner.name)


def is_same_source(spec: str, other: str | None) -> bool:
    """Whether two specs name one source: they may differ in credentials and in a slash at the end."""
    return other is not None and _identity(spec) == _identity(other)


def require_admitted(store: Store, origin: Origin, *, replace: bool = False) -> None:
    """SourceRefused when data of an origin must not join the store. With `replace`, its source is the store's own from
    now on, if the owner allows it."""
    owner = read_owner(store)
    if owner.name is not None:
        _require(owner, origin, replace=replace)
        if replace:
            _claim(store, owner, origin)


def take_ownership(store: Store, owner: Owner, origin: Origin) -> None:
    """Make the source of an origin the owner of the store, unless it has one; `owner` is the one that was read. Call it
    before the first row is written. SourceRefused when another owns the store. Simulated and other data never change
    places.
    """
    if owner.name is not None:
        _require(owner, origin)
    if owner.name is None or (origin.spec and not owner.source):
        _require(_claim(store, owner, origin), origin)


def _claim(store: Store, before: Owner, origin: Origin) -> Owner:
    """The owner once a claim was made in place of another. Of simultaneous claims, ClickHouse keeps the first.

    It may still know of a claim that it lost on a full disk, and drop all others. Without a window it forgets that."""
    owner = _written(store, before, origin)
    if owner == before:
        for window in (0, 100):
            store.execute(f"ALTER TABLE owner MODIFY SETTING non_replicated_deduplication_window = {window}")
        owner = _written(store, before, origin)
    return owner


def _written(store: Store, before: Owner, origin: Origin) -> Owner:
    token = f"claim {before.claimed_at}"
    store.run("insert_owner", name=_name(origin), source=origin.spec, after=before.claimed_at, token=token)
    return read_owner(store)


def _require(owner: Owner, origin: Origin, *, replace: bool = False) -> None:
    source, own = remembered_source(owner), simulated_spec(owner.name)
    held, named = _shown(source or "imported history"), _shown(str(origin))
    if origin.simulated != (own is not None) or (own and not is_same_source(origin.spec, own)):
        reason = f"This store holds {held}, and simulated data is never mixed with other data. Nothing was written."
        if origin == IMPORTED:
            raise SourceMismatch(f"{reason} To import, {_ANOTHER}.")
        if is_same_source(origin.spec, source):
            now = "now says that its data is simulated" if origin.simulated else "no longer says that its data is"
            raise SourceMismatch(f"{named} {now}. {reason} To follow it, {_ANOTHER}.")
        same = held if source else "none"
        raise SourceMismatch(f"{reason} For {named}, {_ANOTHER}. To go on with this one, choose --source {same}.")
    if origin.spec and source and not (replace or is_same_source(origin.spec, source)):
        raise SourceMismatch(
            f"The source of this store is {held}, not {named}. Nothing was written. To keep what is there and go on "
            f"with {named}, give --replace-source once to `jobs once` or `up`."
        )


def _name(origin: Origin) -> str:
    return f"{MADE_UP}{origin.spec}" if origin.simulated else _REAL


def _identity(spec: str) -> str:
    """What a spec has in common with all that name the same source."""
    name, _, rest = spec.partition(":")
    return f"{name}:{re.sub(r'^(.*@|([a-z]+:)?//)', '', rest, flags=re.DOTALL)}".rstrip("/")


def _shown(spec: str) -> str:
    """A spec with *** for credentials."""
    name, colon, rest = spec.partition(":")
    return f"{name}{colon}{without_credentials(rest)}"
