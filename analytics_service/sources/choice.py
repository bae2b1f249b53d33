"""Chooses the source of a store's snapshots (rule 8.7)."""

from dataclasses import dataclass

from analytics_service.config.settings import Settings
from analytics_service.sources.base import Source
from analytics_service.sources.registry import NONE, open_source
from analytics_service.store.admission import read_side, require_admitted, simulated_spec
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Origin, newest_source

_EMPTY = "The store is empty, so there is no source to go on with. Name one with --source or ANALYTICS_SOURCE."
_IMPORTED_ONLY = (
    "The store holds imported history only and has no source, so no snapshots are taken. --source or ANALYTICS_SOURCE "
    "names one."
)
_NAMED_NONE = "The source is none, so no snapshots are taken."


@dataclass(frozen=True, slots=True)
class Choice:
    """The source to take snapshots from, to be closed after use, or the reason why there is none."""

    source: Source | None
    spec: str
    """The spec that names the source to other processes; `none` without one."""
    reason: str = ""


def origin_of(source: Source) -> Origin:
    """The origin of a source's data."""
    return Origin(source.spec, source.simulated)


def choose_source(store: Store, settings: Settings, empty: str | None = None) -> Choice:
    """The source that the settings name; else the store's own, or `empty` if the store has no data.

    SourceRefused when the store must not have data of that source,
    SettingError when it cannot be opened.
    """
    named = settings.source
    if named is None:
        side = read_side(store)
        named = simulated_spec(side) or newest_source(store) if side else empty
        if named is None:
            return Choice(None, NONE, _IMPORTED_ONLY if side else _EMPTY)
    source = open_source(named, settings, store)
    if source is None:
        return Choice(None, NONE, _NAMED_NONE)
    try:
        require_admitted(store, origin_of(source))
    except BaseException:
        source.close()
        raise
    return Choice(source, named)
