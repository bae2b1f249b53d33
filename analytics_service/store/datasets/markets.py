"""The protocol at each snapshot: markets and their values, the protocol token, swap contracts."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

import polars as pl

from analytics_service.clickhouse.columns import Columns, Read, Row, SnapshotRows, SnapshotTable
from analytics_service.clickhouse.connection import Store
from analytics_service.errors import NoSnapshot
from analytics_service.market import kinds
from analytics_service.market.decimals import quantize_below_limit
from analytics_service.market.kinds import DECIMAL, AssetId, Text, Texts, columns_of, record_of, row_of
from analytics_service.market.markets import CollateralMarket, DebtMarket, GlobalConfig, LendMarket, Market
from analytics_service.market.positions import RiskTotals, SwapContract
from analytics_service.market.prices import Prices
from analytics_service.market.ptoken import Arrangement, Ptoken, StakingPool
from analytics_service.market.risk import Risk
from analytics_service.market.sums import TOTAL
from analytics_service.market.supply import MarketValues, supply_of, utilization
from analytics_service.store.datasets.histories import (
    ACCOUNTS_AT_RISK,
    BAD_DEBT,
    COLLATERAL,
    DEBT,
    DEBT_AT_RISK,
    DEPOSITS,
    LIQUIDATABLE_DEBT,
    NET_TVL,
    OF_MARKETS,
    SUMMED,
    TVL,
    UTILIZATION,
    History,
)
from analytics_service.store.datasets.observations import KEY, NO_OBSERVATIONS, Values

_KEY: Columns = {"asset_id": AssetId("Asset id")}
LENDS = "market_lend"
_LEND = SnapshotTable(LENDS, "markets", {**_KEY, **columns_of(LendMarket)}, ("asset_id",))
_COLLATERAL = SnapshotTable("market_collateral", "markets", {**_KEY, **columns_of(CollateralMarket)}, ("asset_id",))
_DEBT = SnapshotTable("market_debt", "markets", {**_KEY, **columns_of(DebtMarket)}, ("asset_id",))
CONFIG = SnapshotTable("market_config", "markets", columns_of(GlobalConfig))
_ORACLE = kinds.PriceType("USD per standard unit: the last oracle price at the snapshot")
_PRICE = SnapshotTable("market_price", "markets", {**_KEY, "price": _ORACLE}, ("asset_id",))


def market_rows(markets: Iterable[Market], config: GlobalConfig, prices: Prices) -> SnapshotRows:
    """A snapshot's rows, with the prices of assets that have a market. `prices` must lack derived prices of receipt
    tokens."""
    rows: dict[SnapshotTable, list[Row]] = {table: [] for table in (_LEND, _COLLATERAL, _DEBT, _PRICE)}
    for market in markets:
        key = {"asset_id": market.asset_id}
        if (price := prices.get(market.asset_id)) is not None:
            rows[_PRICE].append({**key, "price": price})
        for table, part in ((_LEND, market.lend), (_COLLATERAL, market.collateral), (_DEBT, market.debt)):
            if part:
                rows[table].append({**key, **row_of(part)})
    return {**rows, CONFIG: [row_of(config)]}


def read_markets(store: Store, at: int) -> dict[str, Market]:
    """The markets of a snapshot (unix second), by asset id, in the order of ids."""
    return markets_of(lambda table: table.read(store, at))


def markets_of(read: Read) -> dict[str, Market]:
    lends = {row["asset_id"]: record_of(LendMarket, row) for row in read(_LEND)}
    collaterals = {row["asset_id"]: record_of(CollateralMarket, row) for row in read(_COLLATERAL)}
    debts = {row["asset_id"]: record_of(DebtMarket, row) for row in read(_DEBT)}
    return {
        asset_id: Market(asset_id, lends.get(asset_id), collaterals.get(asset_id), debts.get(asset_id))
        for asset_id in sorted({*lends, *collaterals, *debts})
    }


def read_config(store: Store, at: int) -> GlobalConfig:
    """The global configuration at a snapshot (unix second). NoSnapshot if there is none."""
    return config_of(lambda table: table.read(store, at))


def config_of(read: Read) -> GlobalConfig:
    """The global configuration, by a reader of a snapshot's rows. NoSnapshot if there are none."""
    for row in read(CONFIG):
        return record_of(GlobalConfig, row)
    raise NoSnapshot("markets")


def read_market_prices(store: Store, at: int) -> dict[str, Decimal]:
    """The oracle's price of each asset with a market, by asset id, as stored with a snapshot of markets (unix second).
    The caller derives prices of receipt tokens that the oracle does not quote (rule 4.6, receipt prices)."""
    return market_prices_of(lambda table: table.read(store, at))


def market_prices_of(read: Read) -> dict[str, Decimal]:
    return {row["asset_id"]: row["price"] for row in read(_PRICE)}


def protocol_metrics(markets: Iterable[Market], values: Mapping[str, MarketValues]) -> Values:
    """Values by history, from all markets and the USD values of valued markets, by asset id. A value is None if it is
    unknown, or 10^20 or more (rule 2.15, market histories)."""
    tvl = supply_of(values.values()).tvl
    by_history: dict[History, Mapping[str, Decimal | None]] = {
        TVL: {TOTAL: tvl.tvl},
        NET_TVL: {TOTAL: tvl.net_tvl},
        **_summed(values),
        UTILIZATION: {market.asset_id: utilization(market) for market in markets if market.lend},
    }
    return {history: _storable(by_asset) for history, by_asset in by_history.items()}


def unvalued_assets(markets: Iterable[Market], values: Mapping[str, MarketValues], at: int) -> pl.DataFrame:
    """Observations without a value at a unix second, for markets that are not in `values`."""
    amounts = {
        market.asset_id: {
            DEPOSITS: market.lend and market.lend.principal,
            COLLATERAL: market.collateral and market.collateral.balance,
            DEBT: market.debt and market.debt.balance,
        }
        for market in markets
        if market.asset_id not in values
    }
    keys = [
        (history.name, asset_id, at, None)
        for asset_id, sides in amounts.items()
        for history, amount in sides.items()
        if amount
    ]
    return pl.DataFrame(keys, NO_OBSERVATIONS.schema, orient="row")


def _summed(values: Mapping[str, MarketValues]) -> dict[History, Mapping[str, Decimal | None]]:
    """The values that add up to totals; None if unknown."""
    return {
        DEPOSITS: {asset_id: market.deposits.principal for asset_id, market in values.items() if market.deposits},
        COLLATERAL: {asset_id: market.collateral.balance for asset_id, market in values.items() if market.collateral},
        DEBT: {asset_id: market.debt.balance for asset_id, market in values.items() if market.debt},
    }


def vanished_assets(observed: pl.DataFrame) -> pl.DataFrame:
    """Observations of assets that a snapshot no longer shows but the snapshot before did: their series must not carry
    the last value (rule 2.15). The value is 0 in histories that add up to a total, else unknown.
    `was_known`: the observation before had a value.

    `observed` has all values of consecutive snapshots, null for markets without a known value.
    """
    instants = observed["observed_at"].unique().sort()
    following = pl.DataFrame({"observed_at": instants, "next": instants.shift(-1)}).drop_nulls()
    is_summed, is_listed = (
        pl.col("history").is_in([history.name for history in listed]) for listed in (SUMMED, OF_MARKETS)
    )
    was_known = pl.col("value").is_not_null()
    had = observed.filter(is_listed, pl.when(is_summed).then(pl.col("value").ne_missing(0)).otherwise(was_known))
    expected = had.join(following, on="observed_at").with_columns(
        observed_at="next", value=pl.when(is_summed).then(pl.lit(0, DECIMAL)), was_known=was_known
    )
    return expected.join(observed, on=KEY, how="anti").select(*observed.columns, "was_known")


def risk_totals(risk: Risk) -> RiskTotals:
    at_risk, liquidatable, bad = risk.at_risk, risk.liquidatable, risk.bad_debt
    return RiskTotals(at_risk.debt_value, Decimal(at_risk.accounts), liquidatable.debt_value, bad.value)


def risk_metrics(totals: RiskTotals) -> Values:
    """The values of the histories of risk; None if unknown, or 10^20 or more."""
    values = {
        DEBT_AT_RISK: totals.debt_at_risk,
        ACCOUNTS_AT_RISK: totals.accounts_at_risk,
        LIQUIDATABLE_DEBT: totals.liquidatable_debt,
        BAD_DEBT: totals.bad_debt,
    }
    return {history: _storable({TOTAL: value}) for history, value in values.items()}


def _storable(values: Mapping[str, Decimal | None]) -> dict[str, Decimal | None]:
    return {
        asset_id: None if value is None or quantize_below_limit(value) is None else value
        for asset_id, value in values.items()
    }


PTOKEN = SnapshotTable("ptoken_state", "ptoken", columns_of(Ptoken))
_POOLS = SnapshotTable("ptoken_pool", "ptoken", columns_of(StakingPool), ("pool",))
_ARRANGEMENTS = SnapshotTable("unlock_arrangement", "ptoken", columns_of(Arrangement), ("address", "arrangement"))


def ptoken_rows(ptoken: Ptoken, arrangements: Iterable[Arrangement]) -> SnapshotRows:
    """A snapshot's rows; addresses are in lower case."""
    return {
        PTOKEN: [row_of(ptoken)],
        _POOLS: [row_of(pool) for pool in ptoken.pools],
        _ARRANGEMENTS: [row_of(arrangement) for arrangement in arrangements],
    }


def read_ptoken(store: Store, at: int) -> Ptoken:
    """The protocol token at a snapshot (unix second), its pools by index. NoSnapshot if there is none."""
    return ptoken_of(lambda table: table.read(store, at))


def ptoken_of(read: Read) -> Ptoken:
    """The protocol token, by a reader of a snapshot's rows. NoSnapshot if there are none."""
    pools = tuple(record_of(StakingPool, row) for row in read(_POOLS))
    for row in read(PTOKEN):
        return record_of(Ptoken, row, pools=pools)
    raise NoSnapshot("ptoken")


def read_arrangements(store: Store, at: int) -> list[Arrangement]:
    """The unlock arrangements of a snapshot, by address and index."""
    return [record_of(Arrangement, row) for row in _ARRANGEMENTS.read(store, at)]


ROUTES = SnapshotTable(
    "swap_route",
    "routes",
    {
        **columns_of(SwapContract),
        "source": Text("Denom to swap from; empty in the only row of a contract without routes"),
        "targets": Texts("Denoms that the source can be swapped to"),
    },
    ("contract", "source"),
)
# The source in the only row of a contract without routes.
_NO_SOURCE = ""


def route_rows(contracts: Iterable[SwapContract]) -> SnapshotRows:
    rows = [
        {"contract": contract.address, "source": source, "targets": targets}
        for contract in contracts
        for source, targets in (contract.routes or {_NO_SOURCE: ()}).items()
    ]
    return {ROUTES: rows}


def read_contract(store: Store, address: str, at: int) -> SwapContract | None:
    """The swap contract of a (lower-case) address at a snapshot (unix second), or None. Its sources are in ascending
    order, and so are the targets of each."""
    rows = list(ROUTES.read(store, at, "contract = {contract:String}", contract=address))
    if not rows:
        return None
    routes = {row["source"]: tuple(sorted(row["targets"])) for row in rows if row["source"] != _NO_SOURCE}
    return SwapContract(address, routes)
