"""The market analytics state in responses: how much the markets have been used."""

from operator import itemgetter

from analytics_service.market.positions import Activity
from analytics_service.present.renderings import AMOUNT, SPEC, USD, declared
from analytics_service.present.shapes import Field, Many, Shape, within
from analytics_service.store.datasets.sums import Loans

_ASSET = Field("asset", SPEC, "The asset.", itemgetter(0))
ASSET_LOANS = Shape.of(
    "AssetLoans",
    "Loans in one asset.",
    _ASSET,
    Field("value", USD.bare, "USD value of the loans, each at the time of the loan.", itemgetter(1)),
)
LOANS_ORIGINATED = Shape.of(
    "LoansOriginated",
    "All loans since the protocol's first.",
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
    *within("activity", declared(Activity)),
    Field(
        "flash_loan_volume_total",
        USD.bare,
        "USD value of all flash loans, each at the time of the flash loan.",
        "loans.flash",
    ),
    Field("loans_originated", LOANS_ORIGINATED, "All loans.", "loans"),
    Field("assets", Many(ASSET_INTEREST), "Interest by asset.", lambda view: view.interest_paid.items()),
)
