"""Chooses the source of a store's snapshots (rule 8.7, one source), and opens the source of a spec: `<name>`,
`<name>:<rest>` or `none`.

Built-in sources get the whole spec, the settings and the store. All others are entry points of the group SOURCES: a
class or function that takes the rest (empty without a colon) and returns a Source whose spec has this name. Its
ValueError says what the rest must be.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import entry_points

from analytics_service.clickhouse.connection import Store
from analytics_service.config.parsers import SOURCES
from analytics_service.config.settings import Settings, parse_setting, without_credentials
from analytics_service.errors import AnalyticsError, SettingError
from analytics_service.sources.base import Source
from analytics_service.sources.calls import Calls, OpenSource
from analytics_service.sources.sql.source import SqlSource
from analytics_service.sources.upstream.files import read_addresses
from analytics_service.store.ledger import Origin
from analytics_service.store.ownership import is_same_source, read_owner, remembered_source, require_admitted

NONE = "none"
SQL = "sql"
# The schemes of other deployments.
UPSTREAM = ("http", "https")
_EMPTY = "The store is empty and has no source. Name a source with --source or ANALYTICS_SOURCE."
_IMPORTED_ONLY = (
    "The store holds imported history only and has no source, so no snapshots are taken. Name a source with --source "
    "or ANALYTICS_SOURCE."
)
_NAMED_NONE = "The source is none, so no snapshots are taken."


def _open_upstream(spec: str, settings: Settings, _: Store) -> Source:
    # Imported late: the HTTP client is a quarter of a process's imports, and most processes do not need it.
    from analytics_service.sources.upstream.source import UpstreamSource

    return UpstreamSource(spec, settings)


_OWN: Mapping[str, Callable[[str, Settings, Store], Source]] = {
    SQL: SqlSource,
    **dict.fromkeys(UPSTREAM, _open_upstream),
}


def open_source(spec: str, settings: Settings, store: Store) -> Source | None:
    """The source of a spec; None for `none`. Close it after use. SettingError, with the reason, if the spec is
    invalid."""
    name, _, rest = spec.partition(":")
    try:
        spec = parse_setting("source", spec)
        # A missing file is a mistake even if no source reads it.
        read_addresses(settings.addresses_file)
        if spec == NONE:
            return None
        own, calls = _OWN.get(name), Calls(spec, settings.source_timeout)
        opener = partial(own, spec, settings, store) if own else partial(_opener(name), rest)
        opened = calls("opening", opener)
        source = OpenSource(opened, calls if opened.may_hang else None)
        if str(source.spec).partition(":")[0] == name:
            return source
        source.close()
        # Later commands without --source open the source by its own spec.
        raise SettingError(
            f"The source {name} has the spec {source.spec!r}, which does not open it. Its `spec` must be {name}, or "
            f"{name}:<rest>."
        )
    except ValueError as error:
        raise SettingError(f"{without_credentials(spec)[:80]!r} is not a source: it {error}.") from None
    except AnalyticsError:
        raise
    # Any exception: the source may come from another package.
    except Exception as error:
        raise SettingError(f"The source {name} cannot be opened: {type(error).__name__}: {error}.") from error


def _opener(name: str) -> Callable[[str], Source]:
    providers = tuple(entry_points(group=SOURCES, name=name))
    if not providers:
        raise SettingError(f"No installed package provides the source {name}. Reinstall the service.")
    try:
        opener: Callable[[str], Source] = providers[0].load()
    except Exception as error:
        reason = error if isinstance(error, (ImportError, AttributeError)) else f"{type(error).__name__}: {error}"
        raise SettingError(f"The source {name} ({providers[0].value}) cannot be loaded: {reason}.") from error
    return opener


@dataclass(frozen=True, slots=True)
class Choice:
    """The source to take snapshots from, or the reason why there is none. Close the source after use."""

    source: Source | None
    spec: str
    """The spec that names the source to other processes; `none` without a source."""
    reason: str = ""


def origin_of(source: Source) -> Origin:
    """The origin of a source's data. SourceError if a follower cannot find out whether its upstream is simulated."""
    return Origin(source.spec, source.simulated)


def choose_source(
    store: Store, settings: Settings, empty: str | None = None, *, replace_source: bool = False
) -> Choice:
    """The source that the settings name; else the store's own, or `empty` if the store has no data. With
    `replace_source` it becomes the store's own. SourceMismatch if its data must not join the store, SettingError if it
    cannot be opened."""
    owner = read_owner(store)
    named = settings.source or remembered_source(owner) or (empty if owner.name is None else None)
    if named is None:
        return Choice(None, NONE, _EMPTY if owner.name is None else _IMPORTED_ONLY)
    source = open_source(named, settings, store)
    if source is None:
        return Choice(None, NONE, _NAMED_NONE)
    try:
        # The store's own source need not answer now: its first commit checks the owner.
        if replace_source or not is_same_source(source.spec, remembered_source(owner)):
            require_admitted(store, origin_of(source), replace=replace_source)
    except BaseException:
        source.close()
        raise
    return Choice(source, named)
