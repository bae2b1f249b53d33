"""A small protocol with round numbers: assets, markets, the protocol token and one address."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from analytics_service.market.assets import Asset, AssetGroup, AssetKind
from analytics_service.market.markets import (
    CollateralConfig,
    CollateralMarket,
    DebtConfig,
    DebtMarket,
    GlobalConfig,
    LendMarket,
    Market,
)
from analytics_service.market.positions import (
    Account,
    Balance,
    Holding,
    LendPosition,
    Position,
    Stake,
    Unbonding,
)
from analytics_service.market.ptoken import Arrangement, MemberClass, Ptoken, ScheduleKind, StakingPool
from analytics_service.market.rates import MarketRate, apy

D = Decimal

USDT, RECEIPT, ORB, PTK = "native;uusdt", "token;0xr", "native;uorb", "native;uptk"
HEL, HEL_RECEIPT = "native;ahel", "token;0xh"
# 73 days after the first of January: a fifth of the year.
AT = datetime(2025, 3, 15, tzinfo=UTC)
NEW_YEAR = datetime(2025, 1, 1, tzinfo=UTC)

ASSETS = {
    asset.id: asset
    for asset in (
        Asset(AssetGroup.NATIVE, "uusdt", "Tether USD", "USDT", "uusdt", 6, 2, receipt_asset=RECEIPT),
        Asset(AssetGroup.TOKEN, "0xr", "Receipt", "rUSDT", "ruusdt", 6, 2, AssetKind.RECEIPT, origin_asset=USDT),
        Asset(AssetGroup.NATIVE, "uorb", "Orbit", "ORB", "uorb", 6, 3),
        Asset(AssetGroup.NATIVE, "uptk", "Protocol Token", "PTK", "uptk", 6, 2),
        Asset(AssetGroup.NATIVE, "ahel", "Helion", "HEL", "ahel", 18, 4, receipt_asset=HEL_RECEIPT),
        Asset(AssetGroup.TOKEN, "0xh", "Receipt", "rHEL", "rahel", 18, 4, AssetKind.RECEIPT, origin_asset=HEL),
    )
}
PRICES = {USDT: D(1), RECEIPT: D("1.2"), ORB: D(8), PTK: D("0.42"), HEL: D(2000), HEL_RECEIPT: D(5000)}

# 1,200 USDT are lent for 1,000 receipts; 800 million shares are a debt of 880 USDT.
USDT_MARKET = Market(
    USDT,
    LendMarket(apr=D("0.05"), principal=1_200_000_000, receipt_supply=1_000_000_000),
    None,
    DebtMarket(
        DebtConfig(True, 5_000_000_000, D("0.9"), D("0.125")),
        apr=D("0.1"),
        balance=880_000_000,
        shares=800_000_000,
        time_last_distributed_interest=AT,
        utilization_accumulator=D("1.5"),
    ),
)
# 250 HEL are lent for 100 receipts, 2.5 for each; 20 * 10^18 shares are a debt of 30 HEL, 1.5 for each.
HEL_MARKET = Market(
    HEL,
    LendMarket(apr=D("0.02"), principal=250 * 10**18, receipt_supply=100 * 10**18),
    None,
    DebtMarket(
        DebtConfig(True, None, D("0.8"), D("0.2")),
        apr=D("0.3"),
        balance=30 * 10**18,
        shares=20 * 10**18,
        time_last_distributed_interest=AT,
        utilization_accumulator=D(0),
    ),
)
# 400 million shares are 500 ORB of collateral; there is no cap.
ORB_MARKET = Market(
    ORB,
    None,
    CollateralMarket(
        CollateralConfig(True, D("0.7"), D("0.75"), None, D("0.01"), D("0.1")),
        balance=500_000_000,
        shares=400_000_000,
    ),
    None,
)
MARKETS = {HEL: HEL_MARKET, ORB: ORB_MARKET, USDT: USDT_MARKET}
CONFIG = GlobalConfig(
    time_window_nanos=90_000_000_000,
    partial_liquidation_threshold=D(100),
    target_liquidation_health=D("1.05"),
    liquidation_fee=D("0.01"),
    flash_loans_enabled=True,
    flash_loan_fee=D("0.0009"),
    staking_health_modifier=D("0.2"),
    stake_collateral_ratio=D("0.5"),
    stake_flash_loan_ratio=D("0.25"),
    dynamic_discount_width=D("0.3"),
    hnative=ORB,
    ptoken=PTK,
)
PTOKEN = Ptoken(
    asset_id=PTK,
    emission_rate=10_000_000_000,
    tokens_per_weight=1_000,
    total_issued=4_000_000,
    total_claimed=3_000_000,
    total_locked=2_000_000,
    total_supply=5_000_000,
    rewards_last_distributed=AT,
    stake_acc=D("0.125"),
    pools=(
        StakingPool(0, 1_209_600, D(1), D(1), D(1), D(1), 900_000_000),
        StakingPool(1, 31_536_000, D(3), D(4), D(2), D("1.5"), 100_000_000),
    ),
)


@dataclass(frozen=True)
class Context:
    """What the portfolios of the small protocol depend on."""

    assets: Mapping[str, Asset]
    prices: Mapping[str, Decimal]
    markets: Mapping[str, Market]
    config: GlobalConfig
    ptoken: Ptoken


CONTEXT = Context(ASSETS, PRICES, MARKETS, CONFIG, PTOKEN)

# Account 2 owes 110 USDT at 10 % and 0.045 HEL, 90 USD, at 30 %. The receipts redeem 18 USDT and 0.021 HEL, 42 USD.
POSITION = Position(
    address="0x" + "1" * 40,
    accounts=(
        Account(0, (Holding(ORB, 40_000_000),), (Holding(USDT, 100_000_000),)),
        Account(1),
        Account(2, (Holding(ORB, 16_000_000),), (Holding(HEL, 3 * 10**16), Holding(USDT, 100_000_000))),
    ),
    lends=(
        LendPosition(HEL, held=6 * 10**15, collateralized=24 * 10**14),
        LendPosition(USDT, held=10_000_000, collateralized=5_000_000),
    ),
    wallet=(Balance(USDT, 1_234_500_000), Balance("native;mystery", 7)),
    stakes=(Stake(1, 0, 100_000_000, True, None, D("0.1")),),
    unbondings=(Unbonding(2_000_000, AT),),
    unclaimed=1_000_000,
    claimable_rewards=500_000,
    claimable_unbonding=0,
)


def arrangement(kind: ScheduleKind = ScheduleKind.LINEAR, *, last_claimed_at: datetime | None = AT) -> Arrangement:
    """1,000 PTK from New Year on, over a year if linear; 50 are claimed."""
    linear = kind is ScheduleKind.LINEAR
    return Arrangement(
        address=POSITION.address,
        index=0,
        member_class=MemberClass.TEAM,
        kind=kind,
        amount=1_000_000_000,
        claimed=50_000_000,
        begins_at=NEW_YEAR,
        ends_at=datetime(2026, 1, 1, tzinfo=UTC) if linear else None,
        expires_at=None,
        last_claimed_at=last_claimed_at,
        admin="0x" + "2" * 40,
        reclaimed_at=None,
        staked=100_000_000,
        held=0,
    )


def rate(apr: str) -> MarketRate:
    return MarketRate(Decimal(apr), apy(Decimal(apr)))
