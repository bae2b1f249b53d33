"""Assets, prices, markets, routes, positions and the protocol token in upstream's answers."""

from decimal import Decimal

from analytics_service.market.assets import Asset, split_id
from analytics_service.market.kinds import Amount, Index, Rate
from analytics_service.market.markets import (
    CollateralConfig,
    CollateralMarket,
    DebtConfig,
    DebtMarket,
    GlobalConfig,
    LendConfig,
    LendMarket,
    Market,
)
from analytics_service.market.positions import (
    Account,
    Activity,
    Balance,
    Holding,
    LendPosition,
    Position,
    Stake,
    SwapContract,
    Unbonding,
)
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Ptoken, StakingPool
from analytics_service.market.rates import Rates
from analytics_service.sources.upstream.client import Refused
from analytics_service.sources.upstream.fields import AnswerField, Names
from analytics_service.sources.upstream.state import Asker, NoPast

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
    return list(asker.get_list("/assets").data.by_asset(_asset).values())


def _asset(info: AnswerField) -> Asset:
    group, key = split_id(info.asset_id())
    return info["metadata"].record(Asset, info["classification"], names=_RECEIPT, group=group, group_key=key)


def read_prices(asker: Asker) -> list[Price]:
    """The price of every asset that has one."""
    prices = asker.get_list("/assets/prices").data.by_asset(_price)
    return [price for price in prices.values() if price]


def _price(item: AnswerField) -> Price | None:
    price = item["price"]
    return price.record(Price, names=_PRICE, asset_id=item.asset_id()) if price.get("price") else None


def read_rates(asker: Asker) -> Rates:
    """The APR of each market."""
    lend, debt = (asker.get_list(f"/markets/{side}").data.by_asset(_apr) for side in ("lend", "borrow/debts"))
    return Rates(lend, debt)


def _apr(market: AnswerField) -> Decimal:
    apr: Decimal = market["rate"]["apr"].read(_APR, strict=False)
    return apr


def read_markets(asker: Asker) -> list[Market]:
    """The markets of every asset that has any, in ascending order of asset id."""
    overview, interest = asker.get("/markets").data, _interest(asker)
    lends = overview["lend"].by_asset(
        lambda market: market["state"].record(
            LendMarket,
            names=_LEND,
            apr=_apr(market),
            interest_paid=interest.get(market.asset_id()),
            config=config.record(LendConfig) if (config := market.get("config")) else LendConfig(),
        )
    )
    borrow = overview["borrow"]
    collaterals, debts = borrow["collaterals"].by_asset(_collateral), borrow["debts"].by_asset(_debt)
    return [
        Market(asset_id, lends.get(asset_id), collaterals.get(asset_id), debts.get(asset_id))
        for asset_id in sorted({*lends, *collaterals, *debts})
    ]


def _interest(asker: Asker) -> dict[str, int]:
    """The interest that was paid to lenders of each asset so far; nothing if upstream does not tell it."""
    try:
        assets = asker.get(STATE).data["assets"]
    except NoPast:
        return {}
    except Refused as error:
        if error.lacks_path:
            return {}
        raise
    return assets.by_asset(lambda item: item["lend_interest_paid"].read(_AMOUNT, strict=False))


def _collateral(market: AnswerField) -> CollateralMarket:
    config = market["config"].record(CollateralConfig)
    return market["state"].record(CollateralMarket, names=_COLLATERAL, config=config)


def _debt(market: AnswerField) -> DebtMarket:
    config = market["config"].record(DebtConfig)
    return market["state"].record(DebtMarket, names=_DEBT, apr=_apr(market), config=config)


def read_config(asker: Asker) -> GlobalConfig:
    """The rules for all borrowing."""
    return asker.get("/markets/config").data.record(GlobalConfig, strict=True)


def read_ptoken(asker: Asker) -> Ptoken:
    """The protocol token with its staking pools."""
    params, state, staking = (asker.get(f"/ptoken/{part}").data for part in ("params", "state", "staking"))
    pools = [pool.record(StakingPool, pool["params"], pool["state"], strict=True) for pool in staking["pools"].items()]
    return params.record(Ptoken, state, staking["global_state"], strict=True, pools=tuple(pools))


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
    return staking.record(
        Position,
        address=address,
        accounts=tuple(_account(account) for account in markets["borrow"]["accounts"].items()),
        lends=tuple(
            pool.record(LendPosition, pool["receipt_amounts"]) for pool in markets["lend"]["asset_pools"].items()
        ),
        wallet=tuple(_balances(user["wallets"]["balances"])),
        stakes=tuple(
            item.record(Stake, pool=pool["common"]["index"].read(_INDEX, strict=False))
            for pool in staking["pools"].items()
            for item in pool["contents"].items()
        ),
        unbondings=tuple(item.record(Unbonding) for item in staking["unbonding"].items()),
    )


def _account(account: AnswerField) -> Account:
    collaterals, debts = (
        tuple(item.record(Holding) for item in account[side].items()) for side in ("collaterals", "debts")
    )
    return account.record(Account, collaterals=collaterals, debts=debts)


def _balances(balances: AnswerField) -> list[Balance]:
    """The balances with an amount; kinds other than known may lack it."""
    return [
        item.record(Balance, item["values"])
        for item in balances.items()
        if item["values"]["kind"].text() == "known" or item["values"].get("amount")
    ]


def read_activity(asker: Asker) -> Activity:
    """The number of users of the markets."""
    state = asker.get(STATE).data
    names = ("borrower_active", "borrower_account_active", "lender_active")
    return Activity(*(state[name].whole() for name in names))
