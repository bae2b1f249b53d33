"""Reads domain records from upstream's answers."""

from collections.abc import Callable
from typing import Any, TypeVar

from analytics_service.market.assets import Asset, split_id
from analytics_service.market.kinds import Index
from analytics_service.market.markets import CollateralMarket, DebtMarket, LendMarket, Market
from analytics_service.market.positions import Account, Balance, LendPosition, Position, Stake, SwapContract, Unbonding
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Ptoken, StakingPool
from analytics_service.market.rates import Rates
from analytics_service.sources.upstream.client import none_if_lacking
from analytics_service.sources.upstream.fields import AnswerField, Names
from analytics_service.sources.upstream.state import UpstreamState

_R = TypeVar("_R")
# The path of sums over all users.
STATE = "/analytics/market/state"
_INDEX = Index()
# Members whose name differs from the record's field; markets have a newer and an older shape (rule 5.2, overviews).
_PRICE: Names = {"observed_at": ("last_updated_at",), "usd": ("price",)}
_RECEIPT: Names = {"receipt_asset": ("protocol_receipt_asset",)}
_LEND: Names = {"principal": ("principal", "principal_sum"), "receipt_supply": ("receipt_total_supply",)}
# The older shape has no shares; the collateralized amount replaces them.
_COLLATERAL: Names = {"shares": ("shares", "collateral_sum")}
_DEBT: Names = {"balance": ("balance", "balance_sum"), "shares": ("shares", "principal_sum")}


def read_assets(upstream: UpstreamState) -> list[Asset]:
    def asset(info: AnswerField) -> Asset:
        group, key = split_id(info.asset_id())
        return info["metadata"].record(Asset, info["classification"], names=_RECEIPT, group=group, group_key=key)

    return list(upstream.get("/assets").by_asset(asset).values())


def read_prices(upstream: UpstreamState) -> list[Price]:
    prices = upstream.get("/assets/prices").by_asset(lambda item: item["price"])
    return [
        price.record(Price, names=_PRICE, asset_id=asset_id) for asset_id, price in prices.items() if price.get("price")
    ]


def read_rates(upstream: UpstreamState) -> Rates:
    sides = (upstream.get(f"/markets/{side}") for side in ("lend", "borrow/debts"))
    return Rates(*(side.by_asset(lambda market: market["rate"]["apr"].decimal()) for side in sides))


def read_markets(upstream: UpstreamState) -> list[Market]:
    """All markets, in ascending order of asset id."""
    overview = upstream.get("/markets")
    # Interest paid to lenders so far, if upstream reports it.
    state = none_if_lacking(upstream.get, STATE)
    paid = state["assets"].by_asset(lambda item: item["lend_interest_paid"].whole()) if state else {}
    borrow = overview["borrow"]
    lends = overview["lend"].by_asset(
        lambda item: _market(item, LendMarket, _LEND, interest_paid=paid.get(item.asset_id()))
    )
    collaterals = borrow["collaterals"].by_asset(lambda item: _market(item, CollateralMarket, _COLLATERAL))
    debts = borrow["debts"].by_asset(lambda item: _market(item, DebtMarket, _DEBT))
    return [
        Market(asset_id, lends.get(asset_id), collaterals.get(asset_id), debts.get(asset_id))
        for asset_id in sorted({*lends, *collaterals, *debts})
    ]


def _market(item: AnswerField, of: Callable[..., _R], names: Names, **values: Any) -> _R:
    return item["state"].record(of, item.get("rate"), item, names=names, **values)


def read_ptoken(upstream: UpstreamState) -> Ptoken:
    """The protocol token with its staking pools."""
    params, state, staking = (upstream.get(f"/ptoken/{part}") for part in ("params", "state", "staking"))
    pools = staking["pools"].records(StakingPool, "params", "state")
    return params.record(Ptoken, state, staking["global_state"], pools=pools)


def read_routes(address: str, data: AnswerField) -> SwapContract:
    return SwapContract(
        address,
        {item["source"].text(): tuple(target.text() for target in item["targets"].items()) for item in data.items()},
    )


def read_position(address: str, user: AnswerField) -> Position:
    """The position of an address, without unlock arrangements."""
    markets, staking = user["markets"], user["ptoken"]["staking"]
    balances = [(item, item["values"]) for item in user["wallets"]["balances"].items()]
    return staking.record(
        Position,
        address=address,
        accounts=markets["borrow"]["accounts"].records(Account),
        lends=markets["lend"]["asset_pools"].records(LendPosition, "receipt_amounts"),
        # Balances of unknown assets may lack an amount.
        wallet=tuple(
            item.record(Balance, values)
            for item, values in balances
            if values["kind"].text() == "known" or values.get("amount")
        ),
        stakes=tuple(
            item.record(Stake, pool=pool["common"]["index"].read(_INDEX))
            for pool in staking["pools"].items()
            for item in pool["contents"].items()
        ),
        unbondings=staking["unbonding"].records(Unbonding),
    )
