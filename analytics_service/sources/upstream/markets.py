"""Markets in upstream's answers, in either shape of the overview (rule 5.2)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import TypeVar

from analytics_service.market.markets import (
    CollateralConfig,
    CollateralMarket,
    DebtConfig,
    DebtMarket,
    GlobalConfig,
    LendMarket,
    Market,
)
from analytics_service.sources.upstream.fields import AnswerField, Names, unique

_T = TypeVar("_T")
# Members of a state that are not called as the record's field, in the newer and in the older shape.
_LEND: Names = {"principal": ("principal", "principal_sum"), "receipt_supply": ("receipt_total_supply",)}
# The older shape has no shares; there, what is collateralized stands for them.
_COLLATERAL: Names = {"shares": ("shares", "collateral_sum")}
_DEBT: Names = {"balance": ("balance", "balance_sum"), "shares": ("shares", "principal_sum")}


def read_markets(overview: AnswerField, interest: Mapping[str, int]) -> list[Market]:
    """The markets of every asset that has any, in ascending order of asset id. `interest` was paid to lenders of
    assets, as far as upstream tells it."""
    lends = _by_asset(overview["lend"].contents(), _lend)
    lends = {asset_id: replace(lend, interest_paid=interest.get(asset_id)) for asset_id, lend in lends.items()}
    collaterals = _by_asset(overview["borrow"]["collaterals"].contents(), _collateral)
    debts = _by_asset(overview["borrow"]["debts"].contents(), _debt)
    return [
        Market(asset_id, lends.get(asset_id), collaterals.get(asset_id), debts.get(asset_id))
        for asset_id in sorted({*lends, *collaterals, *debts})
    ]


def read_aprs(markets: AnswerField) -> dict[str, Decimal]:
    """The APR of each market in a list, by asset id."""
    return _by_asset(markets.items(), _apr)


def read_config(config: AnswerField) -> GlobalConfig:
    """The rules of all borrowing."""
    return config.record(GlobalConfig)


def _by_asset(items: Iterable[AnswerField], read: Callable[[AnswerField], _T]) -> dict[str, _T]:
    markets: dict[str, _T] = {}
    for item in items:
        asset = item["asset_info"]["asset"]
        markets[unique(markets, asset.asset_id(), asset["id"])] = read(item)
    return markets


def _apr(market: AnswerField) -> Decimal:
    return market["rate"]["apr"].rate()


def _lend(market: AnswerField) -> LendMarket:
    return market["state"].record(LendMarket, _LEND, apr=_apr(market), interest_paid=None)


def _collateral(market: AnswerField) -> CollateralMarket:
    return market["state"].record(CollateralMarket, _COLLATERAL, config=market["config"].record(CollateralConfig))


def _debt(market: AnswerField) -> DebtMarket:
    return market["state"].record(DebtMarket, _DEBT, apr=_apr(market), config=market["config"].record(DebtConfig))
