"""The risk of liquidations in responses."""

from analytics_service.present.assets import CURRENT_ASSET_INFO
from analytics_service.present.renderings import DECIMAL, HEALTH, NUMBER, PRICE, RATIO, SPEC, STRING, USD
from analytics_service.present.shapes import Field, Many, Shape, within

_SLICE = (
    Field("accounts", NUMBER, "Borrow accounts with debt."),
    Field("collateral_value", USD, "USD value of their collateral."),
    Field("debt_value", USD, "USD value of their debt."),
)
ACCOUNTS_AT_RISK = Shape("AccountsAtRisk", "Some borrow accounts together.", _SLICE)
BAD_DEBT = Shape(
    "BadDebt",
    "Debt that collateral does not cover.",
    (
        Field("accounts", NUMBER, "Borrow accounts whose debt is worth more than their collateral."),
        Field("value", USD, "USD by which it is worth more, in all."),
    ),
)
HEALTH_RANGE = Shape(
    "HealthRange",
    "The borrow accounts whose health is in a range.",
    (
        Field("from", DECIMAL, "Least health.", source="begin"),
        Field("to", DECIMAL, "Health that all are below; null if there is no such bound.", source="end", optional=True),
        *within("accounts", _SLICE),
    ),
)


def _by_asset(name: str, what: str) -> Shape:
    return Shape(
        name,
        f"The {what} of all borrow accounts with debt in one asset.",
        (
            CURRENT_ASSET_INFO,
            Field(f"{what}_value", USD, f"USD value of the {what}.", source="value"),
            Field("at_risk_value", USD, "The part in accounts at risk.", source="at_risk"),
            Field("liquidatable_value", USD, "The part in accounts that can be liquidated.", source="liquidatable"),
        ),
        asset="asset_id",
    )


ASSUMED_PRICE = Shape(
    "AssumedPrice",
    "A price that was assumed instead of the oracle's, or that follows from one.",
    (
        Field("asset", SPEC, "The asset.", source="asset_id"),
        Field("price", PRICE, "USD for one standard unit; null if there is no price.", optional=True),
        Field("assumed_price", PRICE, "What was assumed instead."),
    ),
)
RISK = Shape(
    "MarketRisk",
    "Borrow accounts by health. Accounts that owe an asset without a price are in no figure but their own.",
    (
        Field("accounts", NUMBER, "All borrow accounts."),
        Field(
            "accounts_with_debt", NUMBER, "Those with debt; all figures below are of these.", source="indebted.accounts"
        ),
        Field("collateral_value", USD, "USD value of their collateral.", source="indebted.collateral_value"),
        Field("debt_value", USD, "USD value of their debt.", source="indebted.debt_value"),
        Field("at_risk", ACCOUNTS_AT_RISK, "Those whose health is below the threshold."),
        Field("liquidatable", ACCOUNTS_AT_RISK, "Those whose health is below 1."),
        Field("bad_debt", BAD_DEBT, "Debt that collateral does not cover."),
        Field("unpriced_debt_accounts", NUMBER, "Borrow accounts that owe an asset without a price."),
        Field("histogram", Many(HEALTH_RANGE), "Accounts by health."),
        Field("by_collateral", Many(_by_asset("CollateralAtRisk", "collateral")), "Collateral by asset."),
        Field("by_debt", Many(_by_asset("DebtAtRisk", "debt")), "Debt by asset."),
        Field("prices", Many(ASSUMED_PRICE), "Assumed prices."),
    ),
)
RISK_LADDER = Shape(
    "RiskLadder",
    "What could be liquidated at other prices of one asset.",
    (
        CURRENT_ASSET_INFO,
        Field("price", PRICE, "USD for one standard unit now."),
        Field(
            "steps",
            Many(
                Shape(
                    "RiskStep",
                    "The borrow accounts that could be liquidated at a price.",
                    (
                        Field("change", RATIO, "Change of the price."),
                        Field("price", PRICE, "The price."),
                        *within("liquidatable", _SLICE),
                        Field("bad_debt", USD, "USD by which debt exceeds collateral, over all borrow accounts."),
                    ),
                )
            ),
            "Steps of the price.",
        ),
    ),
    asset="asset_id",
)
LIQUIDATION_PRICE = Shape(
    "LiquidationPrice",
    "The price of one asset at which a borrow account's health reaches 1, while other prices stay.",
    (
        Field("asset", SPEC, "The asset.", source="asset_id"),
        Field("price", PRICE, "The price; null if there is none. Of several, the nearest.", optional=True),
        Field("change", RATIO, "Change from the present price.", optional=True),
    ),
)
BORROWER = Shape(
    "Borrower",
    "A borrow account with debt.",
    (
        Field("address", STRING, "Address of the user."),
        Field("account_index", NUMBER, "Position among the address's accounts."),
        Field("collateral_value", USD, "USD value of its collateral."),
        Field("debt_value", USD, "USD value of its debt."),
        Field("ltv", RATIO, "Debt divided by collateral; null without collateral.", optional=True),
        Field("health", HEALTH, "How safe it is; below 1 it can be liquidated."),
        Field(
            "liquidation",
            Many(LIQUIDATION_PRICE),
            "Of its collaterals, then of its other debts; in both the largest first.",
        ),
    ),
)
