"""Values of parameters in example requests: existing items, and ranges that have data."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from analytics_service.errors import NoSnapshot
from analytics_service.market.markets import Market
from analytics_service.market.positions import Position
from analytics_service.state.view import View
from analytics_service.store.datasets.histories import HISTORIES

Values = Mapping[str, object]
_API = "/api/v1"
_USER = "/users/{address}/"
_DATASETS = {path.path: history.dataset for history in HISTORIES for path in history.paths}
_DAYS = timedelta(days=7)
# The market that an asset must have to be looked up.
_LOOKUPS: Mapping[str, Callable[[Market], object]] = {
    "/markets/lend/lookup": lambda market: market.lend,
    "/markets/borrow/collaterals/lookup": lambda market: market.collateral,
    "/markets/borrow/debts/lookup": lambda market: market.debt,
    "/markets/merged/lookup": lambda market: market,
}


def values(path: str, view: View) -> Values:
    """Values for a path's parameters; empty without data. Raises AnalyticsError if the data cannot be read now."""
    path = path.removeprefix(_API)
    try:
        if path in _DATASETS:
            return _range(view.head(_DATASETS[path]).last_observed_at)
        if path.startswith(_USER):
            return _position_values(path.removeprefix(_USER), view)
        if path.startswith("/swap/"):
            return _contract_values(view)
        return _market_values(_LOOKUPS[path], view) if path in _LOOKUPS else {}
    except NoSnapshot:
        return {}


def _range(newest: int) -> Values:
    """The week that ends with the newest observation."""
    last = datetime.fromtimestamp(newest, UTC).date()
    return {"start": last - _DAYS, "end": last}


def _market_values(has: Callable[[Market], object], view: View) -> Values:
    asset_ids = (market.asset_id for market in view.markets.values() if has(market))
    return {"asset_id": asset_id} if (asset_id := next(asset_ids, None)) else {}


def _contract_values(view: View) -> Values:
    contract = view.example_contract
    return {"contract_address": contract.address, "source_denom": next(iter(contract.routes))} if contract else {}


def _position_values(part: str, view: View) -> Values:
    """An address, and an item of its position for the path to look up."""
    position = view.example_position
    if position is None:
        return {}
    candidates: Mapping[str, Sequence[object]] = {
        "asset_id": _assets(part, position),
        "index": _indexes(part, position),
    }
    return {"address": position.address, **{name: choices[0] for name, choices in candidates.items() if choices}}


def _assets(part: str, position: Position) -> list[str]:
    posted = [collateral.asset_id for account in position.accounts for collateral in account.collaterals]
    owed = [debt.asset_id for account in position.accounts for debt in account.debts]
    lent = [lend.asset_id for lend in position.lends]
    return {
        "markets/lend/lookup": lent,
        "markets/merged/lookup": lent + posted + owed,
        "markets/borrow/lookup/collateral": posted,
        "markets/borrow/lookup/debt": owed,
        "wallet/balance": [balance.asset_id for balance in position.wallet],
    }.get(part, [])


def _indexes(part: str, position: Position) -> list[int]:
    if part.startswith("markets/borrow/accounts/"):
        return [account.index for account in position.accounts]
    return [stake.pool for stake in position.stakes] if part == "ptoken/staking/pools/lookup" else []
