"""A source that answers exactly what a test defines, and a protocol made by hand for it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TypeVar

from analytics_service.errors import SourceError
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.market.events import Event
from analytics_service.market.markets import (
    CollateralConfig,
    CollateralMarket,
    DebtConfig,
    DebtMarket,
    GlobalConfig,
    LendConfig,
    LendMarket,
    Market,
)
from analytics_service.market.positions import Position, SwapContract
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, MemberClass, Ptoken, ScheduleKind, StakingPool
from analytics_service.sources.base import Source
from analytics_service.sources.simulated.source import SimulatedSource

_T = TypeVar("_T")
_ALICE, _BOB = "0x" + "a" * 40, "0x" + "b" * 40
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
# The largest amount there can be, and one in the middle of what 128 bits do not hold.
LARGEST = 2**256 - 1
HUGE = 10**50 + 7
FINEST = Decimal("0.000000000000000001")


def market(asset_id: str, lend: LendMarket | None = None, apr: str | None = None) -> Market:
    """A market without collateral, and with debt where a rate is given."""
    debt = None if apr is None else debt_market(Decimal(apr))
    return Market(asset_id, lend, None, debt)


def debt_market(apr: Decimal = Decimal("0.1"), balance: int = 10**36, shares: int = 10**36 - 1) -> DebtMarket:
    """Debt with ordinary rules."""
    config = DebtConfig(True, None, Decimal("0.95"), Decimal("0.2"))
    return DebtMarket(config, apr, balance, shares, NOON, Decimal("12345678901234567890.123456789012345678"))


MARKETS = (
    Market(
        "native;all",
        LendMarket(Decimal("0.031234567890123456"), 10**36 + 1, 10**36, config=LendConfig(LARGEST, paused=False)),
        CollateralMarket(
            CollateralConfig(True, Decimal("0.7"), Decimal("0.8"), LARGEST, FINEST, Decimal("0.15"), True, True),
            HUGE,
            HUGE - 1,
        ),
        DebtMarket(
            DebtConfig(False, HUGE, Decimal("0.95"), Decimal(0)), Decimal("99.5"), HUGE, 1, NOON, Decimal("0.5")
        ),
    ),
    Market(
        "token;collateral",
        None,
        CollateralMarket(CollateralConfig(False, Decimal(0), Decimal(1), None, Decimal(0), Decimal(0)), 0, 0),
        None,
    ),
    Market("token;lend", LendMarket(Decimal(0), 0, 0), None, None),
    Market("token;debt", None, None, debt_market()),
)
ASSETS = (Asset(AssetGroup.TOKEN, "lend", "Lend", "LEND", "ulend", 6, 2),)
CONFIG = GlobalConfig(
    time_window_nanos=2**63 + 1,
    partial_liquidation_threshold=Decimal("1500.25"),
    target_liquidation_health=Decimal("1.05"),
    liquidation_fee=Decimal("0.01"),
    flash_loans_enabled=True,
    flash_loan_fee=FINEST,
    staking_health_modifier=Decimal("0.1"),
    stake_collateral_ratio=Decimal("0.05"),
    stake_flash_loan_ratio=Decimal(1),
    dynamic_discount_width=Decimal("0.2"),
    hnative="native;ahel",
    ptoken="native;uptk",
)
PTOKEN = Ptoken(
    asset_id="native;uptk",
    emission_rate=10**36,
    tokens_per_weight=10**6,
    total_issued=HUGE,
    total_claimed=0,
    total_locked=LARGEST,
    total_supply=LARGEST,
    rewards_last_distributed=NOON,
    stake_acc=Decimal("3.000000000000000001"),
    pools=tuple(
        StakingPool(index, days * 86_400, Decimal(index), Decimal("1.5"), Decimal("0.25"), FINEST, HUGE * index)
        for index, days in enumerate((14, 30, 365))
    ),
)
ARRANGEMENTS = (
    Arrangement(
        address=_ALICE,
        index=0,
        member_class=MemberClass.TEAM,
        kind=ScheduleKind.LINEAR,
        amount=10**36,
        claimed=5,
        begins_at=NOON,
        ends_at=NOON.replace(year=2028),
        expires_at=NOON.replace(year=2030),
        last_claimed_at=NOON.replace(year=2027),
        admin=_BOB,
        reclaimed_at=NOON.replace(month=5),
        staked=1,
        held=HUGE,
    ),
    Arrangement(
        _ALICE, 1, MemberClass.ADVISOR, ScheduleKind.LUMP_SUM, 7, 0, NOON, None, None, None, "admin", None, 0, 0
    ),
    Arrangement(
        _BOB, 0, MemberClass.INVESTOR, ScheduleKind.LUMP_SUM, 9, 9, NOON, None, None, NOON, "admin", None, 0, 0
    ),
)
SWAPS = (
    SwapContract("0x" + "d" * 40, {"uatom": ("uusdt", "ahel"), "uusdt": ("uatom",)}),
    SwapContract("0x" + "e" * 40),
)


class RealSource(SimulatedSource):
    """Stands for a protocol that is not made up."""

    simulated = False

    @property
    def spec(self) -> str:
        return "chain:1"


@dataclass
class HandMade(Source):
    """A source that answers with its fields at any instant; `broken` makes its methods fail."""

    spec: str = "handmade"
    markets_: Sequence[Market] = MARKETS
    config_: GlobalConfig = CONFIG
    events_: Sequence[Event] = ()
    ptoken_: Ptoken = PTOKEN
    arrangements_: Sequence[Arrangement] = ARRANGEMENTS
    positions_: Sequence[Position] = ()
    swaps_: Sequence[SwapContract] = SWAPS
    assets_: Sequence[Asset] = ASSETS
    prices_: Mapping[str, Decimal] = field(default_factory=lambda: {"token;lend": Decimal(2)})
    asked: list[tuple[datetime, datetime]] = field(default_factory=list)
    broken: bool = False

    def assets(self, at: datetime) -> Sequence[Asset]:
        return self.assets_

    def prices(self, at: datetime) -> Sequence[Price]:
        return [Price(asset_id, at, usd) for asset_id, usd in self.prices_.items()]

    def markets(self, at: datetime) -> Sequence[Market]:
        return self._answer(self.markets_)

    def config(self, at: datetime) -> GlobalConfig:
        return self.config_

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        """Events of the range; the call is added to `asked`."""
        self.asked.append((start, end))
        return self._answer([event for event in self.events_ if start <= event.at < end])

    def ptoken(self, at: datetime) -> Ptoken:
        return self.ptoken_

    def arrangements(self, at: datetime) -> Sequence[Arrangement]:
        return self._answer(self.arrangements_)

    def positions(self, at: datetime) -> Iterable[Position]:
        return iter(self._answer(self.positions_))

    def swaps(self, at: datetime) -> Sequence[SwapContract]:
        return self._answer(self.swaps_)

    def _answer(self, answer: Sequence[_T]) -> Sequence[_T]:
        if self.broken:
            raise SourceError("The source is away.")
        return answer
