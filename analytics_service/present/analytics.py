"""Market analytics in responses: risk, borrowers, and use of the markets."""

from operator import itemgetter

from analytics_service.market.borrowers import Borrower, LiquidationPrice
from analytics_service.market.ladder import Ladder, Step
from analytics_service.market.positions import Activity
from analytics_service.market.risk import AccountTotals, AssetRisk, AssumedPrice, BadDebt, Exposure, HealthRange, Risk
from analytics_service.present.assets import asset_fields
from analytics_service.present.renderings import AMOUNT, HEALTH, SPEC, USD, declared
from analytics_service.present.shapes import Field, Many, Shape, nested
from analytics_service.store.datasets.sums import Loans

ACCOUNTS_AT_RISK = Shape.of("AccountsAtRisk", "A group of borrow accounts.", *declared(AccountTotals))
BAD_DEBT = Shape.of("BadDebt", "Debt that collateral does not cover.", *declared(BadDebt))
HEALTH_RANGE = Shape.of(
    "HealthRange",
    "Borrow accounts whose health is in a range.",
    *declared(HealthRange, "from=begin to=end"),
    *nested("accounts", declared(AccountTotals)),
)


def _by_asset(name: str, what: str) -> Shape:
    fields = declared(AssetRisk, f"{what}_value=value at_risk_value=at_risk liquidatable_value=liquidatable")
    return asset_fields(name, f"The {what} of all borrow accounts with debt in one asset.", *fields)


ASSUMED_PRICE = Shape.of(
    "AssumedPrice",
    "A price assumed instead of the oracle's, or a price that follows from an assumed price.",
    *declared(AssumedPrice, "asset=asset_id price assumed_price"),
)
EXPOSURE = asset_fields(
    "PriceExposure",
    "Collateral and debt that follow the price of one asset, including receipt tokens, in all accounts with debt.",
    *declared(Exposure),
)
RISK = Shape.of(
    "MarketRisk",
    "Borrow accounts by health. Except for `accounts`, figures count accounts with debt. Accounts are counted "
    "separately, and in no other figure, if they owe an asset without a price, or if the price of their collateral or "
    "stake was known and is unknown now.",
    *declared(Risk, "accounts"),
    *nested("indebted", declared(AccountTotals, "accounts_with_debt=accounts collateral_value debt_value")),
    Field("at_risk", ACCOUNTS_AT_RISK, "Accounts with health below the threshold."),
    Field("liquidatable", ACCOUNTS_AT_RISK, "Accounts with health below 1."),
    Field("bad_debt", BAD_DEBT, "Debt that collateral does not cover."),
    *declared(Risk, "unpriced_debt_accounts unpriced_collateral_accounts"),
    Field("histogram", Many(HEALTH_RANGE), "Accounts by health."),
    Field("by_collateral", Many(_by_asset("CollateralAtRisk", "collateral")), "Collateral by asset."),
    Field("by_debt", Many(_by_asset("DebtAtRisk", "debt")), "Debt by asset."),
    Field("by_price", Many(EXPOSURE), "Collateral and debt by the asset whose price they follow."),
    Field("prices", Many(ASSUMED_PRICE), "Assumed prices."),
)
RISK_STEP = Shape.of(
    "RiskStep",
    "Borrow accounts that could be liquidated at a price.",
    *declared(Step, "change price"),
    *nested("liquidatable", declared(AccountTotals)),
    *declared(Step, "bad_debt"),
)
RISK_LADDER = asset_fields(
    "RiskLadder",
    "What could be liquidated at other prices of one asset.",
    *declared(Ladder),
    Field("steps", Many(RISK_STEP), "Steps of the price."),
)
LIQUIDATION_PRICE = Shape.of(
    "LiquidationPrice",
    "The price of one asset at which a borrow account's health reaches 1 while other prices stay.",
    *declared(LiquidationPrice, "asset=asset_id price change"),
)
BORROWER = Shape.of(
    "Borrower",
    "A borrow account with debt. Accounts of unknown health come last.",
    *declared(Borrower, health=HEALTH),
    Field(
        "liquidation", Many(LIQUIDATION_PRICE), "Prices of collaterals, then of other debts; both the largest first."
    ),
)


_ASSET = Field("asset", SPEC, "The asset.", itemgetter(0))
ASSET_LOANS = Shape.of(
    "AssetLoans",
    "Loans in one asset.",
    _ASSET,
    Field("value", USD.bare, "USD value of the loans, each at the time of the loan.", itemgetter(1)),
)
LOANS_ORIGINATED = Shape.of(
    "LoansOriginated",
    "All loans since the protocol's first loan.",
    Field("total_value", USD.bare, "USD value of all loans, each at the time of the loan.", "total"),
    Field("breakdown", Many(ASSET_LOANS), "The loans by asset.", lambda loans: loans.by_asset.items()),
    *declared(Loans, "unpriced_loans=unpriced"),
)
ASSET_INTEREST = Shape.of(
    "AssetInterest",
    "Interest in one asset.",
    _ASSET,
    Field("lend_interest_paid", AMOUNT.bare, "Interest paid to lenders so far.", itemgetter(1)),
)
MARKET_STATE = Shape.of(
    "MarketAnalyticsState",
    "How much the markets have been used so far.",
    *nested("activity", declared(Activity)),
    Field(
        "flash_loan_volume_total",
        USD.bare,
        "USD value of all flash loans, each at the time of the flash loan.",
        "loans.flash",
    ),
    Field("loans_originated", LOANS_ORIGINATED, "All loans.", "loans"),
    Field("assets", Many(ASSET_INTEREST), "Interest by asset.", lambda view: view.interest_paid.items()),
)
