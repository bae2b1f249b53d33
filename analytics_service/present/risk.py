"""The risk of liquidations in responses."""

from analytics_service.market.assumptions import AssumedPrice
from analytics_service.market.borrowers import Borrower, LiquidationPrice
from analytics_service.market.ladder import Ladder, Step
from analytics_service.market.risk import AssetRisk, BadDebt, Exposure, HealthRange, Risk, Slice
from analytics_service.present.assets import of_asset
from analytics_service.present.renderings import HEALTH, declared
from analytics_service.present.shapes import Field, Many, Shape, within

ACCOUNTS_AT_RISK = Shape.of("AccountsAtRisk", "Some borrow accounts together.", *declared(Slice))
BAD_DEBT = Shape.of("BadDebt", "Debt that collateral does not cover.", *declared(BadDebt))
HEALTH_RANGE = Shape.of(
    "HealthRange",
    "The borrow accounts whose health is in a range.",
    *declared(HealthRange, "from=begin to=end"),
    *within("accounts", declared(Slice)),
)


def _by_asset(name: str, what: str) -> Shape:
    fields = declared(AssetRisk, f"{what}_value=value at_risk_value=at_risk liquidatable_value=liquidatable")
    return of_asset(name, f"The {what} of all borrow accounts with debt in one asset.", *fields)


ASSUMED_PRICE = Shape.of(
    "AssumedPrice",
    "A price that was assumed instead of the oracle's, or that follows from one.",
    *declared(AssumedPrice, "asset=asset_id price assumed_price"),
)
EXPOSURE = of_asset(
    "PriceExposure",
    "What follows the price of one asset, in all borrow accounts with debt: receipt tokens, too.",
    *declared(Exposure),
)
RISK = Shape.of(
    "MarketRisk",
    "Borrow accounts by health. Accounts that owe an asset without a price, or whose collateral (or, with debt, stake) "
    "had a price that is not known any more, are in no figure but their own; all others but `accounts` and theirs are "
    "of accounts with debt.",
    *declared(Risk, "accounts"),
    *within("indebted", declared(Slice, "accounts_with_debt=accounts collateral_value debt_value")),
    Field("at_risk", ACCOUNTS_AT_RISK, "Those whose health is below the threshold."),
    Field("liquidatable", ACCOUNTS_AT_RISK, "Those whose health is below 1."),
    Field("bad_debt", BAD_DEBT, "Debt that collateral does not cover."),
    *declared(Risk, "unpriced_debt_accounts unpriced_collateral_accounts"),
    Field("histogram", Many(HEALTH_RANGE), "Accounts by health."),
    Field("by_collateral", Many(_by_asset("CollateralAtRisk", "collateral")), "Collateral by asset."),
    Field("by_debt", Many(_by_asset("DebtAtRisk", "debt")), "Debt by asset."),
    Field("by_price", Many(EXPOSURE), "Both by the asset whose price they follow."),
    Field("prices", Many(ASSUMED_PRICE), "Assumed prices."),
)
RISK_STEP = Shape.of(
    "RiskStep",
    "The borrow accounts that could be liquidated at a price.",
    *declared(Step, "change price"),
    *within("liquidatable", declared(Slice)),
    *declared(Step, "bad_debt"),
)
RISK_LADDER = of_asset(
    "RiskLadder",
    "What could be liquidated at other prices of one asset.",
    *declared(Ladder),
    Field("steps", Many(RISK_STEP), "Steps of the price."),
)
LIQUIDATION_PRICE = Shape.of(
    "LiquidationPrice",
    "The price of one asset at which a borrow account's health reaches 1, while other prices stay.",
    *declared(LiquidationPrice, "asset=asset_id price change"),
)
BORROWER = Shape.of(
    "Borrower",
    "A borrow account with debt. Those of unknown health come last.",
    *declared(Borrower, health=HEALTH),
    Field("liquidation", Many(LIQUIDATION_PRICE), "Of collaterals, then of other debts; in both the largest first."),
)
