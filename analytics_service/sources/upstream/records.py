"""Records of the domain in upstream's answers."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeVar

from analytics_service.market.assets import Asset, split_id
from analytics_service.market.kinds import Amount, Index, Rate
from analytics_service.market.markets import CollateralMarket, DebtMarket, LendMarket, Market
from analytics_service.market.positions import (
    Account,
    Balance,
    LendPosition,
    Position,
    Stake,
    SwapContract,
    Unbonding,
)
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Ptoken, StakingPool
from analytics_service.market.rates import Rates
from analytics_service.sources.upstream.client import Refused, none_if
from analytics_service.sources.upstream.fields import AnswerField, Names
from analytics_service.sources.upstream.state import Asker, NoPast

_R = TypeVar("_R")
# Where the sums over all users are.
STATE = "/analytics/market/state"
_AMOUNT, _APR, _INDEX = Amount(), Rate(), Index()
# Members that are not called as the record's field; those of markets in the newer and in the older shape (rule 5.2).
_PRICE: Names = {"observed_at": ("last_updated_at",), "usd": ("price",)}
_RECEIPT: Names = {"receipt_asset": ("protocol_receipt_asset",)}
_LEND: Names = {"principal": ("principal", "principal_sum"), "receipt_supply": ("receipt_total_supply",)}
# The older shape has no shares; there, what is collateralized stands for them.
_COLLATERAL: Names = {"shares": ("shares", "collateral_sum")}
_DEBT: Names = {"balance": ("balance", "balance_sum"), "shares": ("shares", "principal_sum")}


def read_assets(asker: Asker) -> list[Asset]:
    """Every asset."""

    def asset(info: AnswerField) -> Asset:
        group, key = split_id(info.asset_id())
        return info["metadata"].record(Asset, info["classification"], names=_RECEIPT, group=group, group_key=key)

    return list(asker.get("/assets").by_asset(asset).values())


def read_prices(asker: Asker) -> list[Price]:
    """The price of every asset that has one."""
    prices = asker.get("/assets/prices").by_asset(lambda item: item["price"])
    return [
        price.record(Price, names=_PRICE, asset_id=asset_id) for asset_id, price in prices.items() if price.get("price")
    ]


def read_rates(asker: Asker) -> Rates:
    """The APR of each market."""

    def apr(market: AnswerField) -> Decimal:
        rate: Decimal = market["rate"]["apr"].read(_APR, strict=False)
        return rate

    return Rates(*(asker.get(f"/markets/{side}").by_asset(apr) for side in ("lend", "borrow/debts")))


def read_markets(asker: Asker) -> list[Market]:
    """The markets of every asset that has any, in ascending order of asset id."""
    overview, interest = asker.get("/markets"), _interest(asker)
    borrow = overview["borrow"]
    lends = overview["lend"].by_asset(
        lambda item: _market(item, LendMarket, _LEND, interest_paid=interest.get(item.asset_id()))
    )
    collaterals = borrow["collaterals"].by_asset(lambda item: _market(item, CollateralMarket, _COLLATERAL))
    debts = borrow["debts"].by_asset(lambda item: _market(item, DebtMarket, _DEBT))
    return [
        Market(asset_id, lends.get(asset_id), collaterals.get(asset_id), debts.get(asset_id))
        for asset_id in sorted({*lends, *collaterals, *debts})
    ]


def _market(item: AnswerField, of: Callable[..., _R], names: Names, **values: Any) -> _R:
    return item["state"].record(of, item.get("rate"), item, names=names, **values)


def _interest(asker: Asker) -> dict[str, int]:
    """The interest that was paid to lenders of each asset so far; nothing if upstream does not tell it."""
    try:
        state = none_if(Refused.lacks_path, asker.get, STATE)
    except NoPast:
        return {}
    return (
        state["assets"].by_asset(lambda item: item["lend_interest_paid"].read(_AMOUNT, strict=False)) if state else {}
    )


def read_ptoken(asker: Asker) -> Ptoken:
    """The protocol token with its staking pools."""
    params, state, staking = (asker.get(f"/ptoken/{part}") for part in ("params", "state", "staking"))
    pools = staking["pools"].records(StakingPool, "params", "state", strict=True)
    return params.record(Ptoken, state, staking["global_state"], strict=True, pools=pools)


def read_routes(address: str, data: AnswerField) -> SwapContract:
    """The routes of a swap contract."""
    routes: dict[str, tuple[str, ...]] = {}
    for item in data.items():
        source = item["source"].text()
        if source in routes:
            raise item["source"].error("occurs twice")
        routes[source] = tuple(target.text() for target in item["targets"].items())
    return SwapContract(address, routes)


def read_position(address: str, user: AnswerField) -> Position:
    """Everything that an address has, but for its unlock arrangements."""
    markets, staking = user["markets"], user["ptoken"]["staking"]
    balances = [(item, item["values"]) for item in user["wallets"]["balances"].items()]
    return staking.record(
        Position,
        address=address,
        accounts=markets["borrow"]["accounts"].records(Account),
        lends=markets["lend"]["asset_pools"].records(LendPosition, "receipt_amounts"),
        # Balances of other kinds than known may lack an amount.
        wallet=tuple(
            item.record(Balance, values)
            for item, values in balances
            if values["kind"].text() == "known" or values.get("amount")
        ),
        stakes=tuple(
            item.record(Stake, pool=pool["common"]["index"].read(_INDEX, strict=False))
            for pool in staking["pools"].items()
            for item in pool["contents"].items()
        ),
        unbondings=staking["unbonding"].records(Unbonding),
    )
