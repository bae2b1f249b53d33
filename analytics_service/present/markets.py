"""Markets in responses. Two shapes differ in the names of some fields (rule 5.1, older names)."""

from decimal import Decimal

from analytics_service.market.markets import (
    CollateralConfig,
    CollateralMarket,
    DebtConfig,
    DebtMarket,
    GlobalConfig,
    LendConfig,
    LendMarket,
)
from analytics_service.market.rates import MarketRate, rate_of
from analytics_service.market.receipts import redemption_ratio
from analytics_service.present import text
from analytics_service.present.assets import asset_fields
from analytics_service.present.renderings import AMOUNT, DECIMAL, NANOSECONDS, RATIO, declared
from analytics_service.present.shapes import ByShape, Field, Rendering, Scope, Shape, nested

MARKET_RATE = Shape.of("MarketRate", "An interest rate as a fraction per year: 0.05 is 5%.", *declared(MarketRate))


def _redeemed(lend: LendMarket, scope: Scope) -> Decimal:
    return redemption_ratio(lend, scope.current_asset, scope.receipt.current_asset)


# The receipt token may have other decimals than its asset.
_REDEMPTION = Rendering(
    RATIO.schema,
    lambda lend, scope: RATIO.json(_redeemed(lend, scope), scope),
    lambda lend, scope: text.percent(_redeemed(lend, scope)),
)
LEND_STATE = Shape.of(
    "LendMarketState",
    "Deposits of an asset for lending.",
    *declared(LendMarket, "principal_sum=principal"),
    Field("receipt_total_supply", AMOUNT.text_only, "Receipt tokens in existence.", "receipt_supply", receipt=True),
    Field("redemption_ratio", _REDEMPTION, "Amount of the asset that one receipt token redeems.", ""),
)
NEWER_LEND_STATE = LEND_STATE.derive("NewerLendMarketState", principal_sum="principal")
LEND_CONFIG = Shape.of("LendMarketConfig", "Rules for lending an asset.", *declared(LendConfig))
LEND_DATA = Shape.of(
    "LendMarketData",
    "The lend market of an asset.",
    Field("rate", MARKET_RATE, "What lenders earn.", rate_of),
    Field("config", LEND_CONFIG, "The market's rules."),
    Field("state", NEWER_LEND_STATE, "Deposits.", ""),
)
NEWER_LEND_MARKET = asset_fields("NewerLendMarket", "A lend market.", *nested("lend", LEND_DATA.fields))
LEND_MARKET = NEWER_LEND_MARKET.derive("LendMarket", state=LEND_STATE)

COLLATERAL_CONFIG = Shape.of(
    "BorrowCollateralConfig", "Rules for posting an asset as collateral.", *declared(CollateralConfig)
)
COLLATERAL_STATE = Shape.of(
    "BorrowCollateralState",
    "Collateral posted in an asset.",
    *declared(CollateralMarket, "balance collateral_sum=balance"),
)
NEWER_COLLATERAL_STATE = Shape.of(
    "NewerBorrowCollateralState", "Collateral posted in an asset.", *declared(CollateralMarket, "shares balance")
)
COLLATERAL_DATA = Shape.of(
    "BorrowCollateralMarketData",
    "The collateral market of an asset.",
    Field("config", COLLATERAL_CONFIG, "The market's rules."),
    Field("state", NEWER_COLLATERAL_STATE, "Posted collateral.", ""),
)
NEWER_COLLATERAL_MARKET = asset_fields(
    "NewerBorrowCollateralMarket", "A collateral market.", *nested("collateral", COLLATERAL_DATA.fields)
)
COLLATERAL_MARKET = NEWER_COLLATERAL_MARKET.derive("BorrowCollateralMarket", state=COLLATERAL_STATE)

DEBT_CONFIG = Shape.of("BorrowDebtConfig", "Rules for borrowing an asset.", *declared(DebtConfig))
DEBT_STATE = Shape.of(
    "BorrowDebtState",
    "Debt in an asset.",
    Field("principal_sum", AMOUNT, "Shares of the balance that accounts owe.", "shares"),
    *declared(DebtMarket, "balance_sum=balance time_last_distributed_interest utilization_accumulator"),
)
NEWER_DEBT_STATE = DEBT_STATE.derive("NewerBorrowDebtState", principal_sum="shares", balance_sum="balance")
DEBT_DATA = Shape.of(
    "BorrowDebtMarketData",
    "The debt market of an asset.",
    Field("rate", MARKET_RATE, "What borrowers pay.", rate_of),
    Field("config", DEBT_CONFIG, "The market's rules."),
    Field("state", NEWER_DEBT_STATE, "Debt.", ""),
)
NEWER_DEBT_MARKET = asset_fields("NewerBorrowDebtMarket", "A debt market.", *nested("debt", DEBT_DATA.fields))
DEBT_MARKET = NEWER_DEBT_MARKET.derive("BorrowDebtMarket", state=DEBT_STATE)


def _lookup(name: str, newer: Shape, older: Shape) -> ByShape:
    return ByShape(name, "A market: in the older shape unless `shape=newer`.", {"newer": newer, "older": older})


LEND_LOOKUP = _lookup("LendMarketLookup", NEWER_LEND_MARKET, LEND_MARKET)
COLLATERAL_LOOKUP = _lookup("BorrowCollateralMarketLookup", NEWER_COLLATERAL_MARKET, COLLATERAL_MARKET)
DEBT_LOOKUP = _lookup("BorrowDebtMarketLookup", NEWER_DEBT_MARKET, DEBT_MARKET)

MERGED_MARKET = asset_fields(
    "MergedMarket",
    "All markets of one asset; null for a market that it lacks.",
    Field("lend", LEND_DATA, "The lend market.", optional=True),
    Field("borrow_collateral", COLLATERAL_DATA, "The collateral market.", "collateral", optional=True),
    Field("borrow_debt", DEBT_DATA, "The debt market.", "debt", optional=True),
)

GLOBAL_CONFIG = Shape.of(
    "GlobalMarketConfig",
    "Rules for all borrowing.",
    *declared(
        GlobalConfig,
        time_window_nanos=NANOSECONDS,
        dynamic_discount_width=RATIO.bare,
        partial_liquidation_threshold=DECIMAL,
    ),
)
