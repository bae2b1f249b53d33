"""Risk of 100,000 accounts with three items each: a new snapshot and a what-if, beside the health of each account."""

import random
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.market.book import Terms, Valuation, book_of
from analytics_service.market.ladder import ladder_of
from analytics_service.market.portfolio import MarketContext, Portfolio
from analytics_service.market.positions import Account, Holding, Position
from analytics_service.market.risk import risk_of
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.state.view import SharedParts, View
from analytics_service.state.watcher import Heads
from analytics_service.store.datasets.positions import read_borrowing
from analytics_service.store.ledger import read_heads
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.benchmarks.bench import Bench
from tests.benchmarks.harness import Figure, in_turns
from tests.benchmarks.positions import crowd_address

ACCOUNTS = 100_000
_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_STEPS = [Decimal(change) for change in range(-95, 101, 5)]
_ROUNDS = 5
# Seconds of one core, for a new snapshot and for a what-if.
_NEW, _WHAT_IF = 0.5, 0.2


class Borrowers(SimulatedSource):
    """Accounts with two collaterals and a debt of up to 82 % of them, all in assets of the simulated protocol."""

    def __init__(self, accounts: int) -> None:
        super().__init__("1")
        self.accounts = accounts

    def positions(self, at: datetime) -> Iterable[Position]:
        """All positions, generated while they are read."""
        draw = random.Random(1)
        units = self._units(at)
        collaterals = [market.asset_id for market in self.markets(at) if market.collateral and market.asset_id in units]
        debts = [market.asset_id for market in self.markets(at) if market.debt and market.asset_id in units]
        for number in range(self.accounts):
            usd = draw.uniform(10, 100_000)
            held = [Holding(asset_id, int(usd / 2 * units[asset_id])) for asset_id in draw.sample(collaterals, 2)]
            owed = draw.choice(debts)
            debt = Holding(owed, int(usd * draw.uniform(0.1, 0.82) * units[owed]))
            yield Position(crowd_address(number), (Account(0, tuple(held), (debt,)),))

    def _units(self, at: datetime) -> Mapping[str, float]:
        """Denom units for a USD, by asset id."""
        decimals = {asset.id: asset.decimals_denom for asset in self.assets(at)}
        return {price.asset_id: 10 ** decimals[price.asset_id] / float(price.usd) for price in self.prices(at)}


def run(bench: Bench, accounts: int = ACCOUNTS) -> Iterator[Figure]:
    """Medians over some rounds. Processor time has the same meaning on a busy machine."""
    with bench.database("risk") as settings, closing(Store(settings)) as store:
        source = Borrowers(accounts)
        for name in ("prices", "markets", "ptoken", "positions"):
            take_snapshot(JOBS[name], source, store, _NOON)
        view = View(store, Heads(read_heads(store)), SharedParts(store))
        yield from _measured(view, store, accounts)


def _measured(view: View, store: Store, accounts: int) -> Iterator[Figure]:
    label = f"risk of {accounts:,} accounts"
    items = pl.concat(read_borrowing(store, view.head("positions").at))
    markets, quoted = view.markets, view.quoted
    terms = Terms(view.assets, markets, view.config, view.ptoken)
    asset_id = max(quoted, key=lambda name: items.filter(asset_id=name).height)
    book = book_of([items], markets)

    def new() -> None:
        valuation = Valuation(book_of([items], markets), terms, quoted)
        risk_of(valuation)
        ladder_of(valuation, asset_id, _STEPS)

    def what_if() -> None:
        risk_of(Valuation(book, terms, {**quoted, asset_id: quoted[asset_id] / 2}))

    some = list(Borrowers(accounts // 100).positions(_NOON))
    calls = {"new": new, "what-if": what_if, "one by one": lambda: _one_by_one(some, view)}
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(_ROUNDS):
        for name, call in calls.items():
            begun = time.process_time()
            call()
            spent[name].append(time.process_time() - begun)
    seconds = {name: sorted(taken)[_ROUNDS // 2] for name, taken in spent.items()}
    peer = 100 * seconds["one by one"]
    read = in_turns({"read": lambda _: [*read_borrowing(store, view.head("positions").at)]}, _ROUNDS, warm_up=1)["read"]
    yield Figure(f"{label}: reading {items.height:,} items", read, "s")
    yield Figure(f"{label}: a new snapshot with its ladder, processor", seconds["new"], "s", at_most=_NEW)
    yield Figure(f"{label}: a what-if, processor", seconds["what-if"], "s", at_most=_WHAT_IF)
    yield Figure(f"{label}: health of each account, one by one, processor", peer, "s")
    yield Figure(f"{label}: a what-if beside that", seconds["what-if"] / peer, "times", at_most=0.1)


def _one_by_one(positions: Iterable[Position], context: MarketContext) -> None:
    for position in positions:
        for account in Portfolio(position, context).accounts:
            _ = account.health.result
