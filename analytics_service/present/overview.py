"""Responses about several markets: lists, supply, TVL, overviews (rule 5.2, overviews). Records are views."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from analytics_service.market.markets import Market
from analytics_service.market.supply import LendSupply, SupplyPool, Tvl
from analytics_service.present.markets import (
    COLLATERAL_MARKET,
    DEBT_MARKET,
    GLOBAL_CONFIG,
    LEND_MARKET,
    NEWER_COLLATERAL_MARKET,
    NEWER_DEBT_MARKET,
    NEWER_LEND_MARKET,
)
from analytics_service.present.renderings import USD, declared
from analytics_service.present.shapes import ByShape, Field, Many, Shape

SUPPLY_POOL = Shape.of("MarketSupplyPool", "USD sums over markets.", *declared(SupplyPool))
COLLATERAL_SUPPLY = Shape.of(
    "BorrowCollateralMarketSupply",
    "USD sums of collateral.",
    Field("non_receipt", SUPPLY_POOL, "Collateral other than receipt tokens."),
    Field("receipt", SUPPLY_POOL, "Receipt tokens as collateral."),
    Field("total", SUPPLY_POOL, "Sum of both."),
)
LEND_SUPPLY = Shape.of("LendMarketSupply", "USD sums of lending.", *declared(LendSupply))
TVL = Shape.of("TotalValueLocked", "Total value locked.", *declared(Tvl))
OLDER_TVL = Shape.of(
    "OlderTvl",
    "Total value locked, and its parts.",
    Field(
        "collateral_value",
        USD,
        "USD value of collateral other than receipt tokens.",
        "borrow_collateral.non_receipt.balance",
        optional=True,
    ),
    Field("lend_value", USD, "USD value of lend principal.", "lend.principal", optional=True),
    Field("total_value", USD, "Sum of both.", "tvl.tvl", optional=True),
)
SUPPLY = Shape.of(
    "MarketSupply",
    "USD sums over all markets.",
    Field("borrow_collateral", COLLATERAL_SUPPLY, "Collateral."),
    Field("borrow_debt", SUPPLY_POOL, "Debts."),
    Field("lend", LEND_SUPPLY, "Lending."),
    Field("tvl", TVL, "Total value locked."),
)


def _markets_with(part: str) -> Callable[[Any], list[Market]]:
    """A function that returns a view's markets with this part: lend, collateral or debt."""
    of = attrgetter(part)
    return lambda view: [market for market in view.markets.values() if of(market) is not None]


def _part(name: str, supply: Shape, source: str, market: Shape, part: str) -> Shape:
    return Shape.of(
        name,
        "Markets and their sums.",
        Field("supply", supply, "USD sums over the markets.", source=source),
        Field("contents", Many(market), "The markets.", source=_markets_with(part)),
    )


_CONFIG = Field("global_config", GLOBAL_CONFIG, "Rules for all borrowing.", source="config")
_NEWER_COLLATERALS = _part(
    "CollateralOverview", COLLATERAL_SUPPLY, "supply.borrow_collateral", NEWER_COLLATERAL_MARKET, "collateral"
)
_NEWER_DEBTS = _part("DebtOverview", SUPPLY_POOL, "supply.borrow_debt", NEWER_DEBT_MARKET, "debt")
_NEWER_LEND = _part("LendOverview", LEND_SUPPLY, "supply.lend", NEWER_LEND_MARKET, "lend")


def _list(name: str, newer: Shape, older: Shape, part: str) -> ByShape:
    return ByShape(
        name,
        "Markets: a list, or with `shape=newer` the list and its sums.",
        {"newer": newer, "older": Many(older, _markets_with(part))},
    )


LEND_MARKETS = _list("LendMarketList", _NEWER_LEND, LEND_MARKET, "lend")
COLLATERAL_MARKETS = _list("BorrowCollateralMarketList", _NEWER_COLLATERALS, COLLATERAL_MARKET, "collateral")
DEBT_MARKETS = _list("BorrowDebtMarketList", _NEWER_DEBTS, DEBT_MARKET, "debt")
BORROW_OVERVIEW = Shape.of(
    "BorrowOverview",
    "All collateral and debt markets.",
    Field("collaterals", Many(COLLATERAL_MARKET), "Collateral markets.", source=_markets_with("collateral")),
    Field("debts", Many(DEBT_MARKET), "Debt markets.", source=_markets_with("debt")),
)
NEWER_BORROW_OVERVIEW = Shape.of(
    "NewerBorrowOverview",
    "All collateral and debt markets, with their sums.",
    Field("collaterals", _NEWER_COLLATERALS, "Collateral markets.", source=""),
    Field("debts", _NEWER_DEBTS, "Debt markets.", source=""),
)
BORROW_MARKETS = ByShape(
    "BorrowMarkets",
    "All collateral and debt markets; `shape=newer` adds their sums.",
    {"newer": NEWER_BORROW_OVERVIEW, "older": BORROW_OVERVIEW},
)
NEWER_OVERVIEW = Shape.of(
    "NewerMarketOverview",
    "All markets, with their sums.",
    Field("borrow", NEWER_BORROW_OVERVIEW, "Borrowing.", source=""),
    Field("lend", _NEWER_LEND, "Lending.", source=""),
    _CONFIG,
    Field("tvl", TVL, "Total value locked.", source="supply.tvl"),
)
OLDER_OVERVIEW = Shape.of(
    "OlderMarketOverview",
    "All markets.",
    Field("borrow", BORROW_OVERVIEW, "Borrowing.", source=""),
    Field("lend", Many(LEND_MARKET), "Lend markets.", source=_markets_with("lend")),
    _CONFIG,
)
OVERVIEW = ByShape(
    "MarketOverview",
    "All markets: in the newer shape unless `shape=older` is given.",
    {"newer": NEWER_OVERVIEW, "older": OLDER_OVERVIEW},
)
