"""The input of a job, its result, and the function that writes results to the store."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import Any

import polars as pl

from analytics_service.clickhouse.columns import TIMES, SnapshotRows, SnapshotTable, versioned
from analytics_service.clickhouse.connection import Store
from analytics_service.errors import SourceError
from analytics_service.market.assets import Asset
from analytics_service.market.instants import DAY, OLDEST, instant, shown, unix_second
from analytics_service.market.kinds import FOREVER
from analytics_service.market.listing import Definition, redefined
from analytics_service.market.markets import SIDES, Market
from analytics_service.market.misfits import Misfit
from analytics_service.market.prices import Price, Prices, known_prices, newest_prices, quoted
from analytics_service.market.rates import Apr, Rates
from analytics_service.sources.base import Source
from analytics_service.store import rewrite
from analytics_service.store.batches import Pieces, joined
from analytics_service.store.commits import Beginning, Overtaken, RunWriter
from analytics_service.store.datasets.assets import ASSETS, asset_frame, read_assets, read_definitions
from analytics_service.store.datasets.markets import read_markets
from analytics_service.store.datasets.observations import (
    KEY,
    NO_OBSERVATIONS,
    OBSERVATIONS,
    read_last_prices,
    read_observed_at,
    with_known,
)
from analytics_service.store.ledger import (
    Head,
    Origin,
    Run,
    completed_before,
    nth_completed,
    record_rewrite,
    versions_between,
)
from analytics_service.store.ownership import claim
from jobs.left_out import LeftOut

# How far a clock of the source may be ahead.
_MAX_AHEAD = timedelta(days=1)


@dataclass(frozen=True)
class Batch:
    """The instants (aware, whole seconds, oldest first) whose snapshots a job must take, with the source and the store.

    The job reads stored data from the store, and writes nothing. `head` is the newest state of the job's family,
    without snapshots from the future; None without a snapshot. Values of an asset or address that cannot be stored, or
    cannot be true, are `left_out`: the rest of the snapshot counts, and what the store has of that asset or address
    stays (rule 8.17). `left` is the oldest observation (unix second) that a run which died has left, if one has.
    """

    family: str
    source: Source
    store: Store
    instants: Sequence[datetime]
    head: Head | None
    left_out: LeftOut = field(default_factory=LeftOut)
    left: int | None = None

    def assets(self, at: datetime) -> tuple[Mapping[str, Asset], Set[str]]:
        """The source's assets at an instant, by id, and those whose decimals have changed. These, and assets whose
        definition cannot be stored, keep the definition that they had, and stay listed."""
        assets: dict[str, Asset] = {}
        changed: set[str] = set()
        for asset in self.source.assets(at):
            is_fit = not self.left_out.faults("assets", asset, Asset)
            known = self._known.get(getattr(asset, "id", ""), asset if is_fit else None)
            if is_fit and known and known.is_described and known.decimals_denom != asset.decimals_denom:
                changed.add(asset.id)
                self.left_out.note("assets", asset, _changed_decimals(known, asset))
            elif is_fit:
                known = self._known[asset.id] = asset
            if known:
                assets[known.id] = replace(known, listed_until=None, ended_at=None)
        return assets, changed

    def valued_assets(self, at: datetime) -> tuple[Mapping[str, Asset], Set[str]]:
        """The same with those that the source leaves out, until they end: of these, too, there may be amounts."""
        if at not in self._valued:
            listed, changed = self.assets(at)
            going = {asset.id: asset for asset in self._known.values() if not asset.has_ended(at)}
            self._valued.clear()
            self._valued[at] = {**going, **listed}, changed
        return self._valued[at]

    @cached_property
    def _valued(self) -> dict[datetime, tuple[Mapping[str, Asset], Set[str]]]:
        """The assets of the instant for which the batch was asked last."""
        return {}

    @cached_property
    def _known(self) -> dict[str, Asset]:
        """The definitions of assets that are stored, and those first met in this batch."""
        return read_assets(self.store)

    def markets(self, at: datetime, redefined: Set[str]) -> Sequence[Market]:
        """The source's markets at an instant. SourceError when it has none, but should.

        In place of a side that cannot be stored, and of all sides of a redefined asset, it has what the store has:
        without its collateral, an account would seem to be liquidatable.
        """
        unfit = [(market, self._unfit_sides(market, redefined)) for market in self.source.markets(at)]
        stored = self._markets_before(at) if any(sides for _, sides in unfit) else {}
        kept = (_with_stored(market, sides, stored) if sides else market for market, sides in unfit if sides <= SIDES)
        markets = [market for market in kept if market]
        if not markets and self.source.has_markets:
            raise SourceError(f"{self.source.spec} has no markets as of {shown(at)}.")
        self._newest_markets.clear()
        self._newest_markets[unix_second(at)] = {market.asset_id: market for market in markets}
        return markets

    def _unfit_sides(self, market: Market, redefined: Set[str]) -> Set[str]:
        """The fields of a market that cannot be stored, beside SIDES its id, without which nothing of it can be."""
        faults = self.left_out.faults("markets", market, Market)
        return {fault.path.partition(".")[0] for fault in faults} or (SIDES if market.asset_id in redefined else set())

    def markets_by_id(self, at: datetime, redefined: Set[str]) -> Mapping[str, Market]:
        """The same by asset id. The source is asked once for each instant."""
        if unix_second(at) not in self._newest_markets:
            self.markets(at, redefined)
        return self._newest_markets[unix_second(at)]

    @cached_property
    def _newest_markets(self) -> dict[int, Mapping[str, Market]]:
        """The markets by asset id of the instant (unix second) for which the batch was asked last."""
        return {}

    def _markets_before(self, at: datetime) -> Mapping[str, Market]:
        """The stored markets of an instant that is taken again; else those of the last snapshot before it, a complete
        one or one of the batch."""
        before = completed_before(self.store, "markets", unix_second(at) + 1)
        for second, markets in self._newest_markets.items():
            if (-1 if before is None else before) < second < unix_second(at):
                return markets
        return {} if before is None else read_markets(self.store, before)

    def rates(self, at: datetime) -> Rates:
        """The rates of the source's markets at an instant. SourceError when it has none."""
        stated = self.source.rates(at)
        rates = Rates(self._aprs("lend rates", stated.lend), self._aprs("borrow rates", stated.borrow))
        if not (rates.lend or rates.borrow) and self.source.has_markets:
            raise SourceError(f"{self.source.spec} has no rates as of {shown(at)}.")
        return rates

    def _aprs(self, part: str, aprs: Mapping[str, Decimal]) -> Mapping[str, Decimal]:
        fit = self.left_out.fit(part, [Apr(*item) for item in aprs.items()], Apr)
        return {rate.asset_id: rate.apr for rate in fit}

    def prices(self, at: datetime) -> Sequence[Price]:
        """The source's prices at an instant. SourceError when it quotes none.

        Those that claim to be from more than a day later are left out: with them, later observations would count as
        corrections of the past. So are those that claim to be older than all prices.
        """
        fit = self.left_out.fit("prices", self.source.prices(at), Price)
        prices = [price for price in fit if self._is_credible(price, at)]
        if not prices:
            raise SourceError(f"{self.source.spec} quotes no prices as of {shown(at)}.")
        return prices

    def known_prices(self, at: datetime, ids: Iterable[str]) -> Prices:
        """What is known at an instant (rule 4.8) of the prices that the source quotes, and of those of other assets."""
        quotes, second, max_age = newest_prices(self.prices(at)), unix_second(at), self.store.price_max_age
        current = {asset_id for asset_id, price in quotes.items() if at - price.observed_at <= max_age}
        missing = sorted({*ids, *quotes} - current)
        if unread := [asset_id for asset_id in missing if asset_id not in self._last_prices]:
            self._last_prices.update(read_last_prices(self.store, unread, [*map(unix_second, self.instants)]))
        stored = filter(None, (self._last_prices[asset_id].get(second) for asset_id in missing))
        last = newest_prices([*stored, *quotes.values()])
        known = known_prices(last.values(), at, max_age)
        return {**known, **quoted(last[asset_id] for asset_id, usd in known.items() if usd is not None)}

    @cached_property
    def _last_prices(self) -> dict[str, dict[int, Price]]:
        """The last stored prices of assets at the instants, by id and second: of those that have been needed so far."""
        return {}

    def _is_credible(self, price: Price, at: datetime) -> bool:
        """Whether a price may have been observed when it claims to."""
        if min(OLDEST, at) <= price.observed_at <= at + _MAX_AHEAD:
            return True
        time = shown(price.observed_at)
        self.left_out.note("prices", price, Misfit("observed_at", time, f" is {time}, which cannot be true."))
        return False

    def completed_before(self) -> int | None:
        """The last complete snapshot (unix second) of the job's family before the first instant, if there is one."""
        return completed_before(self.store, self.family, unix_second(self.instants[0]))


def _with_stored(market: Market, sides: Set[str], stored: Mapping[str, Market]) -> Market | None:
    """A market with what the store has of some of its sides; None if it then has no side at all."""
    known = stored.get(market.asset_id)
    kept: dict[str, Any] = {side: getattr(known, side, None) for side in sides}
    market = replace(market, **kept)
    return market if market.lend or market.collateral or market.debt else None


def _changed_decimals(known: Asset, asset: Asset) -> Misfit:
    """What is wrong with the definition of an asset that is known with other decimals."""
    now, was = asset.decimals_denom, known.decimals_denom
    remedy = (
        f"If {now} is right, `analytics-service import assets FILE` corrects that, then `jobs recompute` and `jobs "
        "backfill all --again` what was stored with it."
    )
    problem = f" is {now}, and was {was}; decimals never change. {remedy} Its markets stay, too."
    return Misfit("decimals_denom", now, problem)


@dataclass(frozen=True, slots=True)
class Addition:
    """What it takes to add snapshots that are stored as changes before others.

    `rows`, by table, keep the next ones as they are; they have the versions of these. All is true as long as `versions`
    are those of the complete snapshots from `first` to `last` (unix seconds), by instant.
    """

    first: int
    last: int
    versions: Mapping[int, int]
    rows: Mapping[str, pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One family's data as of `at`.

    `observations` are those of its histories, and `removed` the keys of those that go; None means those at its instant
    that it has no more, if it replaces another. `rows` are the rows of the snapshot in other tables, as are `changes`,
    of which there may be millions. `dated` has frames by table whose rows have their own instants. None of them has a
    `version`. `stated` are the histories whose values the source states although they are sums of events; it says that
    it has these up to `complete_until` (unix second). `assets` are definitions as of `at`, from jobs that read them.
    `newest` is the unix second of the newest observation that the source states, for snapshots that may have no new
    observations. `addition` is that of the whole batch, if it is stored as changes, and there are later snapshots.
    """

    at: datetime
    observations: pl.DataFrame = field(default_factory=lambda: NO_OBSERVATIONS)
    rows: SnapshotRows = field(default_factory=dict)
    dated: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    changes: Mapping[str, Pieces] = field(default_factory=dict)
    assets: Sequence[Asset] = ()
    newest: int | None = None
    removed: pl.DataFrame | None = None
    stated: Sequence[str] = ()
    complete_until: int = 0
    addition: Addition | None = None


# Takes the snapshots of a batch, in the order of its instants, or only some of them. It reads no clock: the batch
# has the time.
Collect = Callable[[Batch], list[Snapshot]]


@dataclass(frozen=True, slots=True)
class Taking:
    """How snapshots are taken: the kind of run (job or backfill), the origin of the data, and what takes complete
    snapshots of that kind again: backfill or recompute, empty if they are new."""

    kind: str
    origin: Origin
    again: str = ""


def commit(store: Store, snapshots: Sequence[Snapshot], taking: Taking, beginning: Beginning) -> None:
    """Write snapshots of a job, oldest first, all with the same tables, as a single run.

    Those that replace others take the place of all that these observed, other than what imports have brought since.
    They become visible at once, and a commit that dies half-way shows nothing (rules 8.1 to 8.5). SourceRefused, with
    nothing written, if the store has data that must not be mixed with theirs (rule 8.7). Overtaken, with nothing shown,
    if another process was faster.
    """
    runs = [_run(snapshot, taking, beginning) for snapshot in snapshots]
    removed = [snapshot.removed for snapshot in snapshots if snapshot.removed is not None]
    addition = snapshots[0].addition
    is_rewrite = addition is not None or any(map(len, removed)) or _is_rewrite(runs, taking, beginning.present)
    if not is_rewrite and beginning.left is not None:
        runs[0] = replace(runs[0], first_observed_at=min(runs[0].first_observed_at, beginning.left))
    condition = "instants_taken" if taking.again else "instants_free" if is_rewrite else "runs_unchanged"
    writer = RunWriter(store, beginning, runs, condition)
    observations = pl.concat([snapshot.observations for snapshot in snapshots])
    stored = read_assets(store) if any(snapshot.assets for snapshot in snapshots) else {}
    changed = _redefined(store, snapshots, stored, beginning) if stored or snapshots[0].assets else []
    assets = asset_frame(changed)
    if taking.again != "recompute":
        claim(store, beginning.claimed, taking.origin)
    tables = chain(list(_tables(snapshots)), _changes(snapshots))
    if not is_rewrite:
        with store.together(f"a run of {beginning.family}"):
            writer.insert(ASSETS, assets)
            writer.add(observations)
            for table, rows in tables:
                writer.insert(table, rows)
            if any(asset.id in stored and _changes_past(stored[asset.id], asset) for _, asset in changed):
                record_rewrite(store, [beginning.family], beginning.version, finished=1)
        writer.complete(next((table.name for table in snapshots[0].rows), None))
        return
    # Of jobs, too, an addition waits for its turn: what it was made from must not change.
    what = taking.again or ("backfill" if addition else taking.kind)
    family, version = beginning.family, beginning.version
    with rewrite.staging(store, family, version, what=what, expected=observations.height) as staged:
        writer.require()
        for table, rows in tables:
            if staged.has(table):
                staged.insert(table, versioned(rows, version))
            else:
                writer.insert(table, rows)
        staged.insert(OBSERVATIONS, versioned(with_known(observations), version))
        staged.insert(ASSETS, versioned(assets, version))
        for keys in removed:
            staged.remove(keys)
        if taking.again and not removed:
            staged.remove(gone(store, family, [run.at for run in runs], observations))
        if addition is not None:
            _insert(store, family, addition)
        rewrite.publish(store, staged, writer.runs)


def _redefined(
    store: Store, snapshots: Sequence[Snapshot], stored: Mapping[str, Asset], beginning: Beginning
) -> list[Definition]:
    """The definitions that come with snapshots, where `stored` are those of the present."""
    listings = [(snapshot.at, snapshot.assets) for snapshot in snapshots]
    newest = beginning.present.instant if beginning.present else None
    if newest is None or snapshots[0].at >= newest:
        return redefined(stored, listings, newest, store.price_max_age)
    first, last = unix_second(snapshots[0].at), unix_second(snapshots[-1].at)
    following = nth_completed(store, beginning.family, 1, last, FOREVER)
    others = {second for second in beginning.completed if first <= second <= last}
    others |= set() if following is None else {following}
    complete = {*map(instant, others)} - {snapshot.at for snapshot in snapshots}
    return redefined(stored, listings, newest, store.price_max_age, read_definitions(store), complete)


def _changes_past(stored: Asset, asset: Asset) -> bool:
    """Whether answers about the past change with a definition: they show no value after an end, and amounts in the
    decimals that are known by now."""
    return (stored.ended_at, stored.decimals_denom) != (asset.ended_at, asset.decimals_denom)


def _insert(store: Store, family: str, addition: Addition) -> None:
    """Write the rows of an addition. Overtaken if they may not be true any more; those of before harm nobody."""
    for table, rows in addition.rows.items():
        store.insert(table, rows)
    if versions_between(store, family, addition.first, addition.last) != addition.versions:
        raise Overtaken(f"Another process took or removed snapshots of {family} at the same time.")


def gone(store: Store, family: str, seconds: Sequence[int], observations: pl.DataFrame) -> pl.DataFrame:
    """The keys of what snapshots (unix seconds) have stored that is not among `observations`; imports stay."""
    observed = read_observed_at(store, family, seconds).filter(~pl.col("imported"))
    return observed.join(observations, on=KEY, how="anti").select(KEY)


def _is_rewrite(runs: Sequence[Run], taking: Taking, head: Head | None) -> bool:
    """Whether a run changes the past by more than a lagging oracle does: a backfill of the past, a snapshot from more
    than a day ago, or one that replaces another."""
    if taking.again or head is None:
        return bool(taking.again)
    limit = head.last_observed_at if taking.kind == "backfill" else head.last_observed_at - DAY
    return min(run.first_observed_at for run in runs) <= limit


def _tables(snapshots: Sequence[Snapshot]) -> Iterator[tuple[str, pl.DataFrame]]:
    """The rows of all snapshots by table. Each row has its instant."""
    for name in dict.fromkeys(chain.from_iterable(snapshot.dated for snapshot in snapshots)):
        yield name, pl.concat([snapshot.dated[name] for snapshot in snapshots if name in snapshot.dated])
    for table in snapshots[0].rows:
        yield table.name, rows_of(snapshots, table)


def _changes(snapshots: Sequence[Snapshot]) -> Iterator[tuple[str, pl.DataFrame]]:
    """The changes of all snapshots by table, some rows at a time. Those of a run that dies half-way do not count."""
    for name in dict.fromkeys(chain.from_iterable(snapshot.changes for snapshot in snapshots)):
        pieces = ((snapshot.at, rows) for snapshot in snapshots for rows in snapshot.changes.get(name, ()))
        for rows in joined(rows.with_columns(observed_at=pl.lit(unix_second(at), pl.UInt32)) for at, rows in pieces):
            yield name, rows


def rows_of(snapshots: Sequence[Snapshot], table: SnapshotTable) -> pl.DataFrame:
    """The rows of snapshots in a table, each with its instant."""
    at = [unix_second(snapshot.at) for snapshot in snapshots for _ in snapshot.rows[table]]
    rows = table.frame(chain.from_iterable(snapshot.rows[table] for snapshot in snapshots))
    return rows.with_columns(pl.Series("observed_at", at, dtype=pl.UInt32))


def _run(snapshot: Snapshot, taking: Taking, beginning: Beginning) -> Run:
    """The row of a snapshot in the ledger."""
    at = unix_second(snapshot.at)
    counts = {table.name: table.count(rows) for table, rows in snapshot.rows.items()}
    counts |= {name: pieces.height for name, pieces in snapshot.changes.items()}
    own = sum(counts.values())
    frames = [snapshot.observations, *snapshot.dated.values()]
    times = [frame[name] for frame in frames for name in TIMES if name in frame.columns]
    observed = [second for column in times for second in (column.min(), column.max()) if isinstance(second, int)]
    observed += [at] if own else []
    return Run(
        family=beginning.family,
        at=at,
        kind=taking.kind,
        first_observed_at=min(observed, default=at),
        last_observed_at=max([*observed, at if snapshot.newest is None else snapshot.newest]),
        rows=own + sum(frame.height for frame in frames),
        source=taking.origin.spec,
        version=beginning.version,
        simulated=taking.origin.simulated,
        stated=snapshot.stated,
        complete_until=snapshot.complete_until,
        tables=[*counts],
        table_rows=[*counts.values()],
    )
