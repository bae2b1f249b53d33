"""The newest snapshots as responders see them: each part is read when it is first asked for."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import cached_property

from analytics_service.market.activity import Activity
from analytics_service.market.assets import Asset
from analytics_service.market.markets import GlobalConfig, Market
from analytics_service.market.portfolio import World
from analytics_service.market.positions import Position, SwapContract
from analytics_service.market.ptoken import Arrangement, Ptoken
from analytics_service.market.supply import Supply, market_supply
from analytics_service.market.values import with_receipt_prices
from analytics_service.series.latest import latest
from analytics_service.series.rows import PRICES
from analytics_service.store.assets import read_assets
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Head, Heads
from analytics_service.store.loans import Loans, read_loans
from analytics_service.store.markets import read_config, read_interest_paid, read_markets
from analytics_service.store.positions import read_activity, read_position
from analytics_service.store.ptoken import read_arrangements, read_ptoken
from analytics_service.store.swaps import read_contract


class View:
    """The state at the heads of all families. A part whose family has no snapshot yet is a NoSnapshot.

    Two threads may both read a part; either answer is right.
    """

    def __init__(self, store: Store, heads: Mapping[str, Head]) -> None:
        self.heads = heads
        self._store = store

    def head(self, family: str) -> Head:
        """The family's head."""
        return Heads.of(self.heads, family)

    def versions(self, families: Iterable[str]) -> tuple[int, ...]:
        """What changes when any of the families does."""
        return tuple(self.head(family).version for family in families)

    def at(self, families: Iterable[str]) -> int:
        """The newest snapshot among the families, unix seconds."""
        return max(self.head(family).at for family in families)

    @cached_property
    def assets(self) -> dict[str, Asset]:
        """Every asset, by id, in the order of ids."""
        return read_assets(self._store, self.head(PRICES.family).version)

    @cached_property
    def quotes(self) -> dict[str, tuple[Decimal, datetime]]:
        """The oracle's last price of each asset that has one, and since when it holds."""
        return latest(self._store, PRICES, list(self.assets), self.head(PRICES.family).last_observed_at)

    @cached_property
    def quoted(self) -> dict[str, Decimal]:
        """The oracle's prices alone."""
        return {asset_id: price for asset_id, (price, _) in self.quotes.items()}

    @cached_property
    def prices(self) -> dict[str, Decimal]:
        """The oracle's prices, and those of receipt tokens that it does not quote."""
        return with_receipt_prices(self.quoted, self.assets, self.markets.values())

    @cached_property
    def markets(self) -> dict[str, Market]:
        """Every asset's markets, by asset id, in the order of ids."""
        return read_markets(self._store, self.head("markets").at)

    @cached_property
    def config(self) -> GlobalConfig:
        """The rules of all borrowing."""
        return read_config(self._store, self.head("markets").at)

    @cached_property
    def interest_paid(self) -> dict[str, int]:
        """Interest paid to lenders so far, in denom units, by asset id."""
        return read_interest_paid(self._store, self.head("markets").at)

    @cached_property
    def supply(self) -> Supply:
        """USD sums over all markets."""
        return market_supply(self.markets.values(), self.assets, self.prices)

    @cached_property
    def ptoken(self) -> Ptoken:
        """The protocol token."""
        return read_ptoken(self._store, self.head("ptoken").at)

    @cached_property
    def arrangements(self) -> list[Arrangement]:
        """All unlock arrangements."""
        return read_arrangements(self._store, self.head("ptoken").at)

    @cached_property
    def loans(self) -> Loans:
        """Sums of all loans so far."""
        return read_loans(self._store, self.head("loans").at)

    @cached_property
    def activity(self) -> Activity:
        """Who uses the markets."""
        return read_activity(self._store, self.head("positions").at)

    @cached_property
    def world(self) -> World:
        """What positions are seen against."""
        return World(self.assets, self.prices, self.markets, self.config, self.ptoken)

    def position(self, address: str) -> Position:
        """The position of a (lower-case) address."""
        return read_position(self._store, address, self.head("positions").at)

    def arrangements_of(self, address: str) -> list[Arrangement]:
        """The unlock arrangements of a (lower-case) address."""
        return read_arrangements(self._store, self.head("ptoken").at, address)

    def contract(self, address: str) -> SwapContract | None:
        """A swap contract by its (lower-case) address."""
        return read_contract(self._store, address, self.head("routes").at)


class Views:
    """The view of now: the same one as long as no family has a new snapshot."""

    def __init__(self, store: Store, heads: Heads) -> None:
        self._store = store
        self._heads = heads
        self._view = View(store, {})

    def newest(self) -> View:
        """The view of the newest heads."""
        heads, view = self._heads.all(), self._view
        if view.heads != heads:
            view = self._view = View(self._store, heads)
        return view
