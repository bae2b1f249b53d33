"""The portfolio of an address over time, valued at the prices of each moment (rule 6.9, portfolio history)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from analytics_service.clickhouse.columns import Snapshots
from analytics_service.clickhouse.connection import Store
from analytics_service.concurrency import locked_cached_property
from analytics_service.history.reader import HistoryReader
from analytics_service.history.segments import SegmentRange, last_values
from analytics_service.market.assets import Asset
from analytics_service.market.instants import from_unix, unix_second
from analytics_service.market.markets import GlobalConfig, Market
from analytics_service.market.portfolio import Portfolio
from analytics_service.market.positions import Position
from analytics_service.market.prices import Price, Prices, known_prices
from analytics_service.market.ptoken import Ptoken, no_ptoken
from analytics_service.market.receipts import with_receipt_prices
from analytics_service.state.watcher import Heads
from analytics_service.store.datasets.markets import PTOKEN, config_of, markets_of, ptoken_of
from analytics_service.store.datasets.positions import read_positions
from analytics_service.store.ledger import IMPORTED, imported_spans, newest_snapshots_at

_DATASETS = ("positions", "markets", "prices", "ptoken")
# The instant (unix second) of each dataset's newest snapshot.
Taken = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PortfolioAt:
    """The portfolio of an address at a second, and the snapshots behind it: None without snapshots of positions,
    markets and prices, and of the protocol token if the address has any."""

    taken: Taken
    portfolio: Portfolio | None

    @property
    def is_empty(self) -> bool:
        """Whether the address had nothing, as far as is known."""
        return self.portfolio is None or self.portfolio.position == Position(self.portfolio.position.address)


@dataclass(frozen=True)
class _Context:
    """The MarketContext of a position at an instant, from rows of snapshots."""

    assets: Mapping[str, Asset]
    quoted: Prices
    taken: Taken
    rows: Snapshots
    tokens: Snapshots | None

    @locked_cached_property
    def prices(self) -> dict[str, Decimal | None]:
        return with_receipt_prices(self.quoted, self.assets, self.markets.values())

    @locked_cached_property
    def markets(self) -> dict[str, Market]:
        return markets_of(lambda table: self.rows.read(table, self.taken["markets"]))

    @locked_cached_property
    def config(self) -> GlobalConfig:
        return config_of(lambda table: self.rows.read(table, self.taken["markets"]))

    @locked_cached_property
    def ptoken(self) -> Ptoken:
        tokens = self.tokens
        return ptoken_of(lambda table: tokens.read(table, self.taken["ptoken"])) if tokens else no_ptoken(from_unix(0))


class PortfolioReader:
    """Reads portfolios over time, as of heads, with present definitions of assets. `prices` reads the price history."""

    def __init__(self, store: Store, heads: Heads, assets: Mapping[str, Asset], prices: HistoryReader) -> None:
        self._store = store
        self._heads = heads
        self._assets = assets
        self._prices = prices

    def read(self, address: str, seconds: Sequence[int]) -> list[PortfolioAt]:
        """The portfolios of a (lower-case) address at unix seconds.

        Cost: about ten queries, whose rows grow with the seconds. Raises Superseded when prices have a newer head.
        """
        newest = max(self._heads.head(dataset).at for dataset in _DATASETS if self._heads.has(dataset))
        moments = sorted({max(min(second, newest), 0) for second in seconds})
        listed = newest_snapshots_at(self._store, _DATASETS, moments)
        taken = [{dataset: at[0] for dataset in _DATASETS if (at := listed[dataset][n])} for n in range(len(moments))]
        positions = read_positions(self._store, address, moments)
        portfolio_history = dict(zip(moments, self._valued(moments, taken, positions, listed), strict=True))
        return [portfolio_history[max(min(second, newest), 0)] for second in seconds]

    def _valued(
        self,
        moments: Sequence[int],
        taken: Sequence[Taken],
        positions: Sequence[Position],
        listed: Mapping[str, Sequence[tuple[int, int] | None]],
    ) -> Iterable[PortfolioAt]:
        versions = {dataset: dict(filter(None, pairs)) for dataset, pairs in listed.items()}
        tokens = Snapshots(self._store, versions) if any(map(_has_token, positions)) else None
        ids = {asset_id for position in positions for asset_id in _held(position)}
        ids |= {row["asset_id"] for at in versions["ptoken"] for row in (tokens.read(PTOKEN, at) if tokens else ())}
        related = self._related(ids)
        rows = Snapshots(self._store, versions, related)
        before: tuple[object, ...] = ()
        for quoted, at, position in zip(self._quoted(related, moments, taken), taken, positions, strict=True):
            if (quoted, at, position) != before:
                own = tokens if _has_token(position) else None
                is_known = quoted is not None and {"positions", "markets"} <= at.keys() and (not own or "ptoken" in at)
                before = (quoted, at, position)
                context = _Context(self._assets_at(at), quoted or {}, at, rows, own)
                then = PortfolioAt(at, Portfolio(position, context) if is_known else None)
            yield then

    def _related(self, ids: Iterable[str]) -> list[str]:
        """The assets, and the assets that their prices follow from."""
        related = dict.fromkeys(ids)
        issuers = {asset.receipt_asset: asset_id for asset_id, asset in self._assets.items() if asset.receipt_asset}
        queue = [*related]
        for asset_id in queue:
            asset = self._assets.get(asset_id)
            for origin in (issuers.get(asset_id), asset.origin_asset if asset else None):
                if origin and origin not in related:
                    related[origin] = None
                    queue.append(origin)
        return [*related]

    def _quoted(self, ids: Sequence[str], moments: Sequence[int], taken: Sequence[Taken]) -> Iterable[Prices | None]:
        """The oracle's prices at each moment, as in `View.quoted`; None before the first price."""
        head = self._heads.head("prices")
        imports = imported_spans(self._store, "prices") if IMPORTED in self._heads.origins else []
        ends = []
        for second, at in zip(moments, taken, strict=True):
            newest = at.get("prices", -1)
            is_filled = any(first <= second and until >= newest for first, until in imports)
            ends.append(min(second if is_filled else newest, head.last_observed_at) + 1)
        last_prices = self._last_prices(ids, sorted({end for end in ends if end > 0}))
        for end, at in zip(ends, taken, strict=True):
            known = known_prices(last_prices.get(end, ()), from_unix(at.get("prices", 0)), self._store.price_max_age)
            ended = self._ended(at.get("prices", end - 1))
            yield {name: price for name, price in known.items() if name not in ended} if end > 0 else None

    def _last_prices(self, ids: Sequence[str], ends: Sequence[int]) -> Mapping[int, Sequence[Price]]:
        """The last prices before each of the ascending seconds in `ends`."""
        pinned = self._prices.at(self._heads.head("prices"))
        priced = [asset_id for asset_id in ids if asset_id in pinned.series and asset_id in self._assets]
        prices: dict[int, list[Price]] = {end: [] for end in ends}
        if not priced or not ends:
            return prices
        segment = pinned.segment(priced, ends, ends[-1], all_columns=False)
        rows = last_values([SegmentRange(segment, segment.begin, ends[-1])], priced, ends)
        for number, (value, second) in enumerate(rows.iter_rows()):
            if value is not None:
                price = Price(priced[number // len(ends)], from_unix(second), Decimal(value))
                prices[ends[number % len(ends)]].append(price)
        return prices

    def _ended(self, at: int) -> set[str]:
        """The assets that ended before a second."""
        return {
            asset_id for asset_id, asset in self._assets.items() if asset.ended_at and unix_second(asset.ended_at) < at
        }

    def _assets_at(self, taken: Taken) -> Mapping[str, Asset]:
        """The assets as of snapshots: assets that ended later have no end."""
        at = taken.get("prices", 0)
        going = {
            asset_id: replace(asset, ended_at=None)
            for asset_id, asset in self._assets.items()
            if asset.ended_at and unix_second(asset.ended_at) >= at
        }
        return {**self._assets, **going} if going else self._assets


def _held(position: Position) -> Iterable[str]:
    """The assets in a position, other than the protocol token."""
    for account in position.accounts:
        yield from (holding.asset_id for holding in (*account.collaterals, *account.debts))
    yield from (lent.asset_id for lent in position.lends)
    yield from (balance.asset_id for balance in position.wallet)


def _has_token(position: Position) -> bool:
    """Whether a position has protocol token other than in the wallet."""
    sums = position.unclaimed + position.claimable_rewards + position.claimable_unbonding
    return bool(sums or position.stakes or position.unbondings)
