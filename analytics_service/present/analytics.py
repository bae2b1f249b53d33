"""The market analytics state in responses: how much the markets have been used."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from operator import itemgetter, methodcaller

from analytics_service.market.activity import Activity
from analytics_service.market.values import total
from analytics_service.present.kinds import AMOUNT, NUMBER, SPEC, USD
from analytics_service.present.shapes import Field, Many, Shape, within


@dataclass(frozen=True, slots=True)
class MarketState:
    """Use of the markets so far, by asset id. Loans and flash loans are in USD, interest in denom units."""

    activity: Activity
    flash_loan_volume_total: Decimal
    loans_originated: Mapping[str, Decimal]
    lend_interest_paid: Mapping[str, int]


def _total(loans: Mapping[str, Decimal]) -> Decimal:
    return total(loans.values())


_ITEMS = methodcaller("items")
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
        Field("total_value", USD.bare, "USD value of all loans, each at the time of the loan.", source=_total),
        Field("breakdown", Many(ASSET_LOANS), "The loans by asset.", source=_ITEMS),
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
        Field("flash_loan_volume_total", USD.bare, "USD value of all flash loans, each at the time of the flash loan."),
        Field("loans_originated", LOANS_ORIGINATED, "All loans."),
        Field(
            "assets",
            Many(ASSET_INTEREST),
            "Interest by asset.",
            source=lambda state: state.lend_interest_paid.items(),
        ),
    ),
)
