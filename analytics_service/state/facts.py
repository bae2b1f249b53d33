"""Facts about the store and its disk for operators, as far as they take queries (rule 1.6, status record)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated

from analytics_service.clickhouse.connection import Store
from analytics_service.market.instants import DAY, from_unix, unix_second
from analytics_service.market.kinds import Count, Text, Time
from analytics_service.store.datasets.assets import read_assets
from analytics_service.store.datasets.histories import PRICES
from analytics_service.store.datasets.markets import read_markets
from analytics_service.store.datasets.observations import read_latest
from analytics_service.store.job_runs import JobRun, Scheduler, missing_runs, read_runs, recorded_intervals
from analytics_service.store.ledger import VALUES_ONLY, Head, last_covered_loans
from analytics_service.store.schema import require_all_tables
from analytics_service.store.write_lock import LockHolder, lock_holders

# With fewer bytes left, a large snapshot does not fit, and soon nothing does.
_FULL = 64 * 2**20


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """The disk of ClickHouse; of several servers, the fullest disk. Bytes that the embedded server keeps free do not
    count."""

    free: Annotated[int, Count("Bytes that can still be written")]
    total: Annotated[int, Count("All its bytes")]

    @property
    def faults(self) -> Sequence[str]:
        """A description, if the disk is full."""
        return ["the disk of ClickHouse is full; free space on it"] if self.free < _FULL else []


def read_disk(store: Store) -> DiskSpace | None:
    """The disk; None if no server reports one."""
    rows = store.query("read_disk_space", store.layout.on_all_servers("disks")).rows()
    return DiskSpace(*rows[0]) if rows else None


@dataclass(frozen=True, slots=True)
class LostPrice:
    """The last price of an asset that its source still lists; too old to be used (rule 4.8, known prices)."""

    asset_id: Annotated[str, Text("Asset id")]
    symbol: Annotated[str, Text("Its symbol")]
    newest: Annotated[datetime, Time("Instant of its last price")]
    has_market: bool
    age_seconds: Annotated[int, Count("Age of that price")] = 0

    def at(self, now: datetime) -> "LostPrice":
        """This price with its age at an instant."""
        return replace(self, age_seconds=max(unix_second(now) - unix_second(self.newest), 0))


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about the store. `error` says why they are out of date, if they are.

    `anomalies` is the number of suspicious values in the last day. Up to `complete_until` the source reports its events
    as complete. `schedulers` is None before the first reading. By dataset: `intervals` are seconds between snapshots,
    as schedulers reported them; `gaps` are numbers of scheduled instants of the last day without a snapshot.
    """

    disk: DiskSpace | None = None
    lost_prices: Sequence[LostPrice] = ()
    anomalies: int = 0
    complete_until: datetime | None = None
    schedulers: Sequence[Scheduler] | None = None
    runs: Sequence[JobRun] = ()
    intervals: Mapping[str, int] = field(default_factory=dict)
    gaps: Mapping[str, int] = field(default_factory=dict)
    corrections: Sequence[LockHolder] = ()
    error: str = ""

    def last_failure(self, dataset: str) -> JobRun | None:
        """The last report of a snapshot of a dataset that could not be taken."""
        failed = (run for run in self.runs if run.dataset == dataset and run.failed_at)
        return max(failed, key=lambda run: run.failed_at or 0, default=None)


def read_facts(store: Store, heads: Mapping[str, Head], known: Facts | None = None) -> Facts:
    """The facts as of heads. With `known`, only those that may change at any moment are read anew: the disk,
    schedulers and corrections. Raises SchemaError if tables or views are missing."""
    if known is None:
        require_all_tables(store)
    runs, schedulers = read_runs(store)
    intervals = recorded_intervals(runs, schedulers)
    return replace(
        known or _slow_facts(store, heads, intervals),
        disk=read_disk(store),
        schedulers=schedulers,
        runs=runs,
        intervals=intervals,
        corrections=lock_holders(store),
        error="",
    )


def _slow_facts(store: Store, heads: Mapping[str, Head], intervals: Mapping[str, int]) -> Facts:
    prices, loans = heads.get("prices"), heads.get("loans")
    since = max((head.newest for head in heads.values()), default=DAY) - DAY
    covered = last_covered_loans(store, loans.at + 1) if loans else None
    return Facts(
        lost_prices=_lost_prices(store, prices, heads.get("markets")) if prices and prices.at != VALUES_ONLY else (),
        anomalies=store.query("count_anomalies", start=since, end=since + DAY + 1)["anomalies"].item(),
        complete_until=from_unix(covered.complete_until) if covered and covered.complete_until else None,
        gaps=missing_runs(store, intervals, since),
    )


def _lost_prices(store: Store, prices: Head, markets: Head | None) -> Sequence[LostPrice]:
    assets = read_assets(store, prices.version).values()
    listed = {asset.id: asset for asset in assets if asset.listed_until is not None and not asset.ended_at}
    latest = read_latest(store, PRICES, [*listed], prices.last_observed_at) if listed else {}
    lost = {asset_id: at for asset_id, (_, at) in latest.items() if prices.instant - at > store.price_max_age}
    traded = read_markets(store, markets.at) if lost and markets and markets.at != VALUES_ONLY else ()
    return [LostPrice(asset_id, listed[asset_id].symbol, at, asset_id in traded) for asset_id, at in lost.items()]
