"""Values of parameters in example requests: they name what exists, and ranges that have data."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from analytics_service.errors import NoSnapshot
from analytics_service.market.markets import Market
from analytics_service.market.positions import Position
from analytics_service.state.view import View
from analytics_service.store.histories import HISTORIES

Values = Mapping[str, object]
_API = "/api/v1"
_USER = "/users/{address}/"
_FAMILIES = {path.path: history.family for history in HISTORIES for path in history.paths}
_DAYS = timedelta(days=7)
# The market that an asset must have to be looked up.
_LOOKUPS: Mapping[str, Callable[[Market], object]] = {
    "/markets/lend/lookup": lambda market: market.lend,
    "/markets/borrow/collaterals/lookup": lambda market: market.collateral,
    "/markets/borrow/debts/lookup": lambda market: market.debt,
    "/markets/merged/lookup": lambda market: market,
}


def values(path: str, view: View) -> Values:
    """Values for a path's parameters; none where there is no data. An AnalyticsError where it cannot be read now."""
    path = path.removeprefix(_API)
    try:
        if path in _FAMILIES:
            return _range(view.head(_FAMILIES[path]).last_observed_at)
        if path.startswith(_USER):
            return _of_position(path.removeprefix(_USER), view)
        if path.startswith("/swap/"):
            return _of_contract(view)
        return _of_market(_LOOKUPS[path], view) if path in _LOOKUPS else {}
    except NoSnapshot:
        return {}


def _range(newest: int) -> Values:
    """The week that ends with the newest observation."""
    last = datetime.fromtimestamp(newest, UTC).date()
    return {"start": last - _DAYS, "end": last}


def _of_market(has: Callable[[Market], object], view: View) -> Values:
    found = (market.asset_id for market in view.markets.values() if has(market))
    return {"asset_id": asset_id} if (asset_id := next(found, None)) else {}


def _of_contract(view: View) -> Values:
    contract = view.example_contract
    return {"contract_address": contract.address, "source_denom": next(iter(contract.routes))} if contract else {}


def _of_position(part: str, view: View) -> Values:
    """An address, and something in its position that the path can look up."""
    position = view.example_position
    if position is None:
        return {}
    found: Mapping[str, Sequence[object]] = {
        "asset_id": _assets(part, position),
        "index": _indexes(part, position),
    }
    return {"address": position.address, **{name: some[0] for name, some in found.items() if some}}


def _assets(part: str, position: Position) -> list[str]:
    posted = [one.asset_id for account in position.accounts for one in account.collaterals]
    owed = [one.asset_id for account in position.accounts for one in account.debts]
    lent = [one.asset_id for one in position.lends]
    return {
        "markets/lend/lookup": lent,
        "markets/merged/lookup": lent + posted + owed,
        "markets/borrow/lookup/collateral": posted,
        "markets/borrow/lookup/debt": owed,
        "wallet/balance": [one.asset_id for one in position.wallet],
    }.get(part, [])


def _indexes(part: str, position: Position) -> list[int]:
    if part.startswith("markets/borrow/accounts/"):
        return [account.index for account in position.accounts]
    return [stake.pool for stake in position.stakes] if part == "ptoken/staking/pools/lookup" else []
