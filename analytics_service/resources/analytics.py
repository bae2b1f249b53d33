"""/api/v1/analytics: use of the markets, liquidation risk, and unlocks of the protocol token."""

from decimal import Decimal
from operator import attrgetter

from analytics_service.errors import EntityNotFound, ParameterInvalid
from analytics_service.http import params
from analytics_service.market import risk
from analytics_service.market.assets import resolve_id
from analytics_service.market.borrowers import Borrowers, borrowers_of
from analytics_service.market.ladder import Ladder, ladder_of
from analytics_service.market.ptoken import unlock_groups
from analytics_service.market.risk import assume_prices, assumed_prices
from analytics_service.present.analytics import BORROWER, MARKET_STATE, RISK, RISK_LADDER
from analytics_service.present.ptoken import UNLOCKS_DISTRIBUTION, UnlocksDistribution
from analytics_service.present.shapes import Many
from analytics_service.resources.current import VALUED, StatePath
from analytics_service.resources.snapshots import Arguments
from analytics_service.state.view import View


def _assumed(view: View, arguments: Arguments) -> dict[str, Decimal]:
    """The assumed prices by asset id. Raises EntityNotFound for an unknown asset."""
    return assume_prices(arguments["prices"] or (), view.valuation)


def _risk(view: View, arguments: Arguments) -> risk.Risk:
    prices = _assumed(view, arguments)
    valuation = view.valuation_at(prices)
    threshold = arguments["threshold"] or risk.AT_RISK
    return risk.risk_of(valuation, threshold, assumed_prices(prices, view.prices, valuation.prices))


def _ladder(view: View, arguments: Arguments) -> Ladder:
    changes = _changes(arguments)
    asset_id = _priced(view, arguments["asset_id"], "asset_id")
    following = [_priced(view, name, "following") for name in arguments["following"] or ()]
    return ladder_of(view.valuation, asset_id, changes, following)


def _priced(view: View, name: str, parameter: str) -> str:
    """The id of the asset that a named asset stands for. Raises EntityNotFound if it is unknown, or has no price."""
    named = resolve_id(name, view.assets, parameter)
    asset_id = view.valuation.underlying(named)
    if view.prices.get(asset_id) is None:
        raise EntityNotFound(f"{parameter}: {named[:100]!r} names an asset without a price.")
    return asset_id


def _changes(arguments: Arguments) -> list[Decimal]:
    """The steps of a ladder, in percent. Raises ParameterInvalid if there are none or too many."""
    defaults = {"from": params.LADDER_FROM, "to": params.LADDER_TO, "step": params.LADDER_STEP}
    first, last, step = (default if arguments[name] is None else arguments[name] for name, default in defaults.items())
    if first > last:
        raise ParameterInvalid("to", f"{last} is below from, {first}")
    if not step:
        raise ParameterInvalid("step", "must be above 0")
    steps = int((last - first) / step) + 1
    if steps > params.MAX_STEPS:
        raise ParameterInvalid(
            "step", f"gives {steps:,} steps from {first} to {last}; at most {params.MAX_STEPS} are allowed"
        )
    return [first + step * number for number in range(steps)]


def _borrowers(view: View, arguments: Arguments) -> Borrowers:
    order, limit, offset = arguments["sort"], arguments["limit"], arguments["offset"]
    valuation = view.valuation_at(_assumed(view, arguments))
    return borrowers_of(valuation, order, limit, offset, arguments["address"])


def _next_borrowers(borrowers: Borrowers, arguments: Arguments) -> dict[str, object]:
    after = arguments["offset"] + len(borrowers.listed)
    return {"offset": after} if borrowers.listed and after < borrowers.count else {}


def _unlocks(view: View, arguments: Arguments) -> UnlocksDistribution:
    return UnlocksDistribution(view.ptoken.asset_id, unlock_groups(view.arrangements, view.head("ptoken").instant))


_BOOK = ("positions", "markets", "prices", "ptoken")
PATHS = (
    StatePath(
        "analytics/market/state",
        "Use of the markets so far: loans, activity and interest.",
        MARKET_STATE,
        lambda view, arguments: view,
        ("markets", "loans", "positions"),
        describes_assets=False,
    ),
    StatePath(
        "analytics/market/risk",
        "All borrow accounts by health: how much could be liquidated, now or at other prices.",
        RISK,
        _risk,
        _BOOK,
        (params.THRESHOLD, params.ASSUMED_PRICES, params.WITH_TEXT),
    ),
    StatePath(
        "analytics/market/risk/ladder",
        "What could be liquidated at other prices of one asset, step by step. A receipt token stands for its origin.",
        RISK_LADDER,
        _ladder,
        _BOOK,
        (*params.ASSET, *params.LADDER, params.WITH_TEXT),
        rows="steps",
    ),
    StatePath(
        "analytics/market/borrowers",
        "Borrow accounts with debt, a page at a time, with the prices at which they are liquidated.",
        Many(BORROWER, attrgetter("listed")),
        _borrowers,
        _BOOK,
        (*params.BORROWERS, params.ASSUMED_PRICES, params.WITH_TEXT),
        count=attrgetter("count"),
        next=_next_borrowers,
    ),
    StatePath(
        "analytics/ptoken/unlocks-distribution",
        "Sums of unlock arrangements by member class, at the snapshot's instant.",
        UNLOCKS_DISTRIBUTION,
        _unlocks,
        ("ptoken",),
        (params.WITH_PERCENT, *VALUED),
        rows="groups",
    ),
)
