"""The values of the protocol that /metrics shows: the newest of histories, and the health of some addresses.

Values of histories are those that the newest snapshots observed. So none is computed for a scrape, and what was unknown
at a snapshot is missing rather than old. While newer ones cannot be read, those that were read last stay for a while,
because alerts that wait begin anew after a scrape without a value. How old snapshots are, other metrics tell.
"""

import difflib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import partial
from itertools import islice

from cachetools import LRUCache

from analytics_service.config.settings import Settings
from analytics_service.errors import AnalyticsError, NoSnapshot, SettingError
from analytics_service.market.addresses import parse_address
from analytics_service.market.instants import instant
from analytics_service.market.share import Share
from analytics_service.market.sums import TOTAL
from analytics_service.state.heads import LONGEST_OUTAGE
from analytics_service.state.view import View, Views
from analytics_service.store.connection import Store
from analytics_service.store.histories import HISTORIES, LOANS, PRICES, History
from analytics_service.store.ledger import Head
from analytics_service.store.observations import read_observed_at
from analytics_service.store.sums import read_last_sums

log = logging.getLogger(__name__)

_ALL = "all"
_MOST_ADDRESSES = 50
# Series of one metric.
_MOST_SERIES = 2_000
# The families that health is made from.
_BOOK = ("positions", "markets", "prices", "ptoken")
# More than there are families with histories.
_KEPT = 16
_UNKNOWN = Decimal("NaN")
_Values = Mapping[tuple[str, str], Decimal]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The histories and the (lower-case) addresses whose values are shown."""

    histories: Sequence[History] = ()
    addresses: Sequence[str] = ()


NOTHING = Chosen()


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest values: `observed` by history and asset, TOTAL for the sum over all, of histories that could be read,
    and the `health` of accounts with debt by address and index. What is unknown is missing, but of health not a number.
    `symbols` are those of assets that have not ended."""

    observed: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict)
    health: _Values = field(default_factory=dict)
    symbols: Mapping[str, str] = field(default_factory=dict)


def chosen_values(settings: Settings) -> Chosen:
    """The values that the settings name. SettingError for what is neither a history nor an address."""
    by_name = {history.slug: history for history in HISTORIES}
    names: set[str] = set()
    addresses: dict[str, None] = {}
    for word in settings.metrics_values:
        name = word.replace("_", "-")
        if name == _ALL or name in by_name:
            names |= {*by_name} if name == _ALL else {name}
            continue
        try:
            addresses[parse_address(word)] = None
        except ValueError:
            raise _unusable(settings, _neither(word, [*by_name])) from None
    if len(addresses) > _MOST_ADDRESSES:
        raise _unusable(settings, f"it must have at most {_MOST_ADDRESSES} addresses, and has {len(addresses)}")
    return Chosen(tuple(history for history in HISTORIES if history.slug in names), tuple(addresses))


def _neither(word: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(word.replace("_", "-"), names, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"{word[:100]!r} is neither an address nor one of {_ALL}, {', '.join(names)}{hint}"


def _unusable(settings: Settings, reason: str) -> SettingError:
    return SettingError(f"ANALYTICS_METRICS_VALUES={str(settings.metrics_values)[:80]} is not usable: {reason}.")


@dataclass(frozen=True, slots=True)
class _Reading:
    """Values of some heads, which were the newest `at` an instant."""

    at: datetime
    heads: Sequence[Head]
    values: _Values


class ValueReader:
    """Reads the chosen values, once for each newest snapshot."""

    def __init__(self, store: Store, views: Views, chosen: Chosen) -> None:
        self.chosen = chosen
        self._store = store
        self._views = views
        self._kept: Share[_Values] = Share(LRUCache(_KEPT))
        self._last: dict[Sequence[str], _Reading] = {}
        self._symbols: Mapping[str, str] = {}

    def newest(self, at: datetime) -> Newest:
        """The newest values at an instant, or those read last while these cannot be read, and without any whose
        snapshot is older than a price may be."""
        try:
            view = self._views.newest()
        except AnalyticsError as error:
            log.warning("Metrics lack all values of the protocol: %s", error)
            return Newest()
        try:
            self._symbols = {key: asset.symbol for key, asset in view.described.items() if not asset.ended_at}
        except AnalyticsError as error:
            log.warning("Symbols in metrics are those of before: %s", error)
        values = {
            family: self._read(view, at, (family,), partial(self._observed, view, family))
            for family in {history.family: None for history in self.chosen.histories}
        }
        observed = {
            history.name: _series(history, known, self._symbols)
            for history in self.chosen.histories
            if (known := values[history.family]) is not None
        }
        health = self._read(view, at, _BOOK, partial(self._health, view)) if self.chosen.addresses else None
        return Newest(observed, health or {}, self._symbols)

    def _read(self, view: View, at: datetime, families: Sequence[str], read: Callable[[], _Values]) -> _Values | None:
        """What is read of some families, again only after their snapshots, or what was read last if that fails; none of
        it if these are too old. None if there is nothing to read, or for too long no way to."""
        try:
            heads = view.heads_of(filter(view.heads.has, families))
            if self._are_old(heads, at):
                return {}
            self._last[families] = _Reading(at, heads, self._kept.get((families, heads), read))
        except NoSnapshot:
            return None
        except AnalyticsError as error:
            log.warning("Metrics have no new values made from %s: %s", ", ".join(families), error)
        last = self._last.get(families)
        if last is None or (at - last.at).total_seconds() > LONGEST_OUTAGE:
            return None
        return {} if self._are_old(last.heads, at) else last.values

    def _are_old(self, heads: Sequence[Head], at: datetime) -> bool:
        return any(at - instant(head.newest) > self._store.price_max_age for head in heads)

    def _observed(self, view: View, family: str) -> _Values:
        """What is known of a family's histories at its newest snapshot, by history and asset."""
        at = view.head(family).at
        if family == PRICES.family:
            return {(PRICES.name, asset_id): usd for asset_id, usd in view.quoted.items() if usd is not None}
        # Sums are observed when events change them, all others at each snapshot.
        if family == LOANS.family:
            values = read_last_sums(self._store, at)
        else:
            rows = read_observed_at(self._store, family, [at]).select("history", "asset_id", "value")
            values = {(name, asset_id): value for name, asset_id, value in rows.drop_nulls().iter_rows()}
        view.require_unchanged([family])
        return values

    def _health(self, view: View) -> _Values:
        """The health of the accounts of the chosen addresses that have debt; not a number where it is unknown."""
        valuation = view.valuation_of(self.chosen.addresses)
        unknown, owing = valuation.unknown, valuation.unknown_owing
        healths = {
            (address, str(index)): (
                _UNKNOWN if account in unknown else valuation.values(account).health(view.config).result
            )
            for account, (address, index) in enumerate(valuation.book.accounts.iter_rows())
            if account not in unknown or account in owing
        }
        shown = ((account, health) for account, health in healths.items() if not health.is_infinite())
        return dict(islice(shown, _MOST_SERIES))


def _series(history: History, values: _Values, ids: Iterable[str]) -> dict[str, Decimal]:
    """The values of a history: those of assets where it has them, else the total. A metric has no total
    beside its parts, because its series are added up."""
    names = ids if history.by_asset else [TOTAL]
    known = ((name, values[history.name, name]) for name in names if (history.name, name) in values)
    return dict(islice(known, _MOST_SERIES))
