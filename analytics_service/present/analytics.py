"""The market analytics state in responses: how much the markets have been used."""

from operator import itemgetter

from analytics_service.present.renderings import AMOUNT, NUMBER, SPEC, USD
from analytics_service.present.shapes import Field, Many, Shape, within

_ASSET = Field("asset", SPEC, "The asset.", source=itemgetter(0))
_COUNTS = (
    Field("borrower_active", NUMBER, "Addresses with debt."),
    Field("borrower_account_active", NUMBER, "Borrow accounts with debt."),
    Field("lender_active", NUMBER, "Addresses that lend."),
)
ASSET_LOANS = Shape(
    "AssetLoans",
    "Loans in one asset.",
    (_ASSET, Field("value", USD.bare, "USD value of the loans, each at the time of the loan.", source=itemgetter(1))),
)
LOANS_ORIGINATED = Shape(
    "LoansOriginated",
    "All loans since the protocol's first.",
    (
        Field("total_value", USD.bare, "USD value of all loans, each at the time of the loan.", source="total"),
        Field("breakdown", Many(ASSET_LOANS), "The loans by asset.", source=lambda loans: loans.by_asset.items()),
    ),
)
ASSET_INTEREST = Shape(
    "AssetInterest",
    "Interest in one asset.",
    (
        _ASSET,
        Field("lend_interest_paid", AMOUNT.bare, "Interest paid to lenders so far.", source=itemgetter(1)),
    ),
)
MARKET_STATE = Shape(
    "MarketAnalyticsState",
    "How much the markets have been used so far.",
    (
        *within("activity", _COUNTS),
        Field(
            "flash_loan_volume_total",
            USD.bare,
            "USD value of all flash loans, each at the time of the flash loan.",
            source="loans.flash",
        ),
        Field("loans_originated", LOANS_ORIGINATED, "All loans.", source="loans"),
        Field(
            "assets",
            Many(ASSET_INTEREST),
            "Interest by asset.",
            source=lambda view: view.interest_paid.items(),
        ),
    ),
)
