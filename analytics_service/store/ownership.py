"""Decides which data may join a store (rule 8.7, one source): simulated data never mixes with other data, and all
snapshots come from one source until another replaces it.

All data that is not simulated has one owner; each simulated source is an owner of its own. Before the first commit
writes a row, its owner becomes the store's owner; the first commit of a source makes that source the store's. Commits
of others are refused.
"""

import re
from dataclasses import dataclass

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import without_credentials
from analytics_service.errors import SourceMismatch
from analytics_service.store.ledger import Origin

_ANOTHER = "use an empty store: --data-dir names its folder, ANALYTICS_CLICKHOUSE_DATABASE its database on a server"
_REAL = "not simulated"
"""The owner's name of a store without simulated data."""
MADE_UP = "simulated by "
"""The owner's name of simulated data is this and the spec. Earlier simulations have other prefixes, or none."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a store: `name` is made from a simulated source's spec, or _REAL, or None before the first commit.
    `source` is the spec of the source of its jobs, empty before their first commit. `claimed_at` is in unix
    microseconds."""

    name: str | None = None
    source: str = ""
    claimed_at: int = 0


def read_owner(store: Store) -> Owner:
    owners = store.query("read_owner")
    return Owner(*owners.row(0)) if owners.height else Owner()


def simulated_spec(name: str | None) -> str | None:
    """The spec of the simulated source in an owner's name, if any. SourceMismatch for an earlier simulation, which
    cannot be continued."""
    if name is None or name == _REAL:
        return None
    if not name.startswith(MADE_UP):
        held = f"{name.rpartition(' ')[2]} of an earlier version, whose simulation differs and cannot be continued"
        raise SourceMismatch(f"This store holds {held}. To start over, {_ANOTHER}.")
    return name.removeprefix(MADE_UP)


def remembered_source(owner: Owner) -> str | None:
    """The spec of the store's source, if it has one. SourceMismatch for an earlier simulation."""
    simulated = simulated_spec(owner.name)
    return owner.source or simulated


def is_same_source(spec: str, other: str | None) -> bool:
    """Whether two specs name one source. Credentials and a slash at the end make no difference."""
    return other is not None and _identity(spec) == _identity(other)


def require_admitted(store: Store, origin: Origin, *, replace: bool = False) -> None:
    """SourceMismatch if data of an origin must not join the store. With `replace`, the origin's source becomes the
    store's, if the owner allows it."""
    owner = read_owner(store)
    if owner.name is not None:
        _require(owner, origin, replace=replace)
        if replace:
            _claim(store, owner, origin)


def take_ownership(store: Store, owner: Owner, origin: Origin) -> None:
    """Make an origin's source the owner of the store, unless it has one. Call it before the first row is written, with
    the owner that was read. SourceMismatch if another source owns the store."""
    if owner.name is not None:
        _require(owner, origin)
    if owner.name is None or (origin.spec and not owner.source):
        _require(_claim(store, owner, origin), origin)


def _claim(store: Store, before: Owner, origin: Origin) -> Owner:
    """The owner after a claim that replaces `before`. ClickHouse keeps the first of simultaneous claims.

    ClickHouse may remember a claim whose rows it lost on a full disk, and drop all others. Setting the deduplication
    window to 0 makes it forget."""
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
        kind = "simulated data" if origin.simulated else "data that is not simulated"
        raise SourceMismatch(
            f"This store holds {held}, and simulated data is never mixed with other data. Nothing was written. For "
            f"{named} ({kind}), {_ANOTHER}."
        )
    if origin.spec and source and not (replace or is_same_source(origin.spec, source)):
        raise SourceMismatch(
            f"The source of this store is {held}, not {named}. Nothing was written. To keep its data and continue with "
            f"{named}, pass --replace-source once to `jobs once` or `up`."
        )


def _name(origin: Origin) -> str:
    return f"{MADE_UP}{origin.spec}" if origin.simulated else _REAL


def _identity(spec: str) -> str:
    """A spec without credentials, scheme and trailing slash."""
    name, _, rest = spec.partition(":")
    return f"{name}:{re.sub(r'^(.*@|([a-z]+:)?//)', '', rest, flags=re.DOTALL)}".rstrip("/")


def _shown(spec: str) -> str:
    """A spec with *** for credentials."""
    name, colon, rest = spec.partition(":")
    return f"{name}{colon}{without_credentials(rest)}"
