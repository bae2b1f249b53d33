"""/api/v1/analytics/market: who is liquidated when prices change."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from analytics_service.errors import EntityNotFound, ParameterInvalid
from analytics_service.http import params
from analytics_service.http.envelope import success
from analytics_service.market import risk
from analytics_service.market.assets import as_stored
from analytics_service.market.assumptions import assumed, assumed_prices
from analytics_service.market.borrowers import Borrowers, borrowers_of
from analytics_service.market.ladder import Ladder, ladder_of
from analytics_service.present.risk import BORROWER, RISK, RISK_LADDER
from analytics_service.present.shapes import Many
from analytics_service.resources.current import Current, StatePath, flags_of, scope_of
from analytics_service.state.view import View

_FAMILIES = ("prices", "markets", "ptoken", "positions")


class Risk(Current):
    """All borrow accounts by health: how much could be liquidated, now or at other prices."""

    families = _FAMILIES
    query = (params.THRESHOLD, params.ASSUMED_PRICES, params.WITH_TEXT)
    shape = RISK

    def record(self, view: View, arguments: Mapping[str, Any]) -> risk.Risk:
        """The risk at the requested prices. EntityNotFound if one is of no asset."""
        prices = assumed(arguments["prices"] or (), view.assets, view.prices)
        valuation = view.valuation_at(prices)
        threshold = arguments["threshold"] or risk.AT_RISK
        return risk.risk_of(valuation, threshold, assumed_prices(prices, view.prices, valuation.prices))


class RiskLadder(Current):
    """What could be liquidated at other prices of one asset, step by step."""

    families = _FAMILIES
    query = (params.ASSET_ID, *params.LADDER, params.WITH_TEXT)
    shape = RISK_LADDER

    def record(self, view: View, arguments: Mapping[str, Any]) -> Ladder:
        """The ladder. EntityNotFound for an asset without a price."""
        changes = _changes(arguments)
        (asset_id,) = as_stored([arguments["asset_id"]], view.assets)
        if asset_id not in view.prices:
            what = "an asset without a price" if asset_id in view.assets else "no asset"
            raise EntityNotFound(f"asset_id: {asset_id[:100]!r} names {what}.")
        return ladder_of(view.valuation, asset_id, changes)


class BorrowerList(StatePath):
    """Borrow accounts with debt, a page at a time, with the prices at which they are liquidated."""

    families = _FAMILIES
    query = (*params.BORROWERS, params.WITH_TEXT)
    shape = Many(BORROWER)

    def record(self, view: View, arguments: Mapping[str, Any]) -> Borrowers:
        """The page."""
        order, limit, offset = arguments["sort"], arguments["limit"], arguments["offset"]
        return borrowers_of(view.valuation, order, limit, offset, arguments["address"])

    def body(self, record: Borrowers, view: View, arguments: Mapping[str, Any]) -> bytes:
        """The page, and how many accounts there are."""
        return success(self.shape.render(record.listed, scope_of(view, flags_of(arguments))), count=record.count)


def _changes(arguments: Mapping[str, Any]) -> list[Decimal]:
    """The steps of a ladder, in percent. ParameterInvalid if there are none or too many."""
    defaults = {"from": params.LADDER_FROM, "to": params.LADDER_TO, "step": params.LADDER_STEP}
    given = {name: default if arguments[name] is None else arguments[name] for name, default in defaults.items()}
    first, last, step = given.values()
    if first > last:
        raise ParameterInvalid("to", f"{last} is below from, {first}")
    if not step:
        raise ParameterInvalid("step", "it must be above 0")
    steps = int((last - first) / step) + 1
    if steps > params.MAX_STEPS:
        raise ParameterInvalid(
            "step", f"from {first} to {last} these are {steps:,} steps; at most {params.MAX_STEPS} fit"
        )
    return [first + step * number for number in range(steps)]
