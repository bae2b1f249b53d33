"""Markets in responses. Two shapes differ in the names of some fields (rule 5.1)."""

from analytics_service.market.markets import (
    CollateralConfig,
    CollateralMarket,
    DebtConfig,
    DebtMarket,
    GlobalConfig,
    LendMarket,
)
from analytics_service.market.rates import MarketRate, rate_of
from analytics_service.market.shares import redemption_ratio
from analytics_service.present.assets import CURRENT_ASSET_INFO
from analytics_service.present.renderings import AMOUNT, DECIMAL, NANOSECONDS, RATIO, declared
from analytics_service.present.shapes import ByShape, Field, Shape, within

MARKET_RATE = Shape("MarketRate", "An interest rate as a fraction per year: 0.05 is 5%.", declared(MarketRate))


LEND_STATE = Shape(
    "LendMarketState",
    "Deposits of an asset for lending.",
    (
        *declared(LendMarket, "principal_sum=principal"),
        Field("receipt_total_supply", AMOUNT.text_only, "Receipt tokens in existence.", "receipt_supply", receipt=True),
        Field("redemption_ratio", RATIO, "Amount of the asset that one receipt token redeems.", redemption_ratio),
    ),
)
NEWER_LEND_STATE = LEND_STATE.derive("NewerLendMarketState", principal_sum="principal")
LEND_DATA = Shape(
    "LendMarketData",
    "The lend market of an asset.",
    (
        Field("rate", MARKET_RATE, "What lenders earn.", rate_of),
        Field("state", NEWER_LEND_STATE, "Deposits.", ""),
    ),
)
NEWER_LEND_MARKET = Shape(
    "NewerLendMarket", "A lend market.", (CURRENT_ASSET_INFO, *within("lend", LEND_DATA.fields)), asset="asset_id"
)
LEND_MARKET = NEWER_LEND_MARKET.derive("LendMarket", state=LEND_STATE)

COLLATERAL_CONFIG = Shape(
    "BorrowCollateralConfig", "Rules for posting an asset as collateral.", declared(CollateralConfig)
)
COLLATERAL_STATE = Shape(
    "BorrowCollateralState",
    "Collateral posted in an asset.",
    declared(CollateralMarket, "balance collateral_sum=balance"),
)
NEWER_COLLATERAL_STATE = Shape(
    "NewerBorrowCollateralState", "Collateral posted in an asset.", declared(CollateralMarket, "shares balance")
)
COLLATERAL_DATA = Shape(
    "BorrowCollateralMarketData",
    "The collateral market of an asset.",
    (
        Field("config", COLLATERAL_CONFIG, "The market's rules."),
        Field("state", NEWER_COLLATERAL_STATE, "What is posted.", ""),
    ),
)
NEWER_COLLATERAL_MARKET = Shape(
    "NewerBorrowCollateralMarket",
    "A collateral market.",
    (CURRENT_ASSET_INFO, *within("collateral", COLLATERAL_DATA.fields)),
    asset="asset_id",
)
COLLATERAL_MARKET = NEWER_COLLATERAL_MARKET.derive("BorrowCollateralMarket", state=COLLATERAL_STATE)

DEBT_CONFIG = Shape("BorrowDebtConfig", "Rules for borrowing an asset.", declared(DebtConfig))
DEBT_STATE = Shape(
    "BorrowDebtState",
    "Debt in an asset.",
    (
        Field("principal_sum", AMOUNT, "Shares of the balance that accounts owe.", "shares"),
        *declared(DebtMarket, "balance_sum=balance time_last_distributed_interest utilization_accumulator"),
    ),
)
NEWER_DEBT_STATE = DEBT_STATE.derive("NewerBorrowDebtState", principal_sum="shares", balance_sum="balance")
DEBT_DATA = Shape(
    "BorrowDebtMarketData",
    "The debt market of an asset.",
    (
        Field("rate", MARKET_RATE, "What borrowers pay.", rate_of),
        Field("config", DEBT_CONFIG, "The market's rules."),
        Field("state", NEWER_DEBT_STATE, "What is owed.", ""),
    ),
)
NEWER_DEBT_MARKET = Shape(
    "NewerBorrowDebtMarket", "A debt market.", (CURRENT_ASSET_INFO, *within("debt", DEBT_DATA.fields)), asset="asset_id"
)
DEBT_MARKET = NEWER_DEBT_MARKET.derive("BorrowDebtMarket", state=DEBT_STATE)


def _lookup(name: str, newer: Shape, older: Shape) -> ByShape:
    return ByShape(name, "A market: the older shape unless `shape=newer` is given.", {"newer": newer, "older": older})


LEND_LOOKUP = _lookup("LendMarketLookup", NEWER_LEND_MARKET, LEND_MARKET)
COLLATERAL_LOOKUP = _lookup("BorrowCollateralMarketLookup", NEWER_COLLATERAL_MARKET, COLLATERAL_MARKET)
DEBT_LOOKUP = _lookup("BorrowDebtMarketLookup", NEWER_DEBT_MARKET, DEBT_MARKET)

MERGED_MARKET = Shape(
    "MergedMarket",
    "All markets of one asset; null for a market that it lacks.",
    (
        CURRENT_ASSET_INFO,
        Field("lend", LEND_DATA, "The lend market.", optional=True),
        Field("borrow_collateral", COLLATERAL_DATA, "The collateral market.", "collateral", optional=True),
        Field("borrow_debt", DEBT_DATA, "The debt market.", "debt", optional=True),
    ),
    asset="asset_id",
)

GLOBAL_CONFIG = Shape(
    "GlobalMarketConfig",
    "Rules for all borrowing.",
    declared(
        GlobalConfig,
        time_window_nanos=NANOSECONDS,
        dynamic_discount_width=RATIO.bare,
        partial_liquidation_threshold=DECIMAL,
    ),
)
