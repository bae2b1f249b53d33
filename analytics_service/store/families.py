"""The tables of each family of the ledger, apart from definitions of assets, which several families write."""

from collections.abc import Mapping, Sequence

from analytics_service.store.events import ACCOUNT_EVENTS

TABLES: Mapping[str, Sequence[str]] = {
    "prices": ("price",),
    "rates": ("lend_rate", "borrow_rate"),
    "markets": (
        "market_lend",
        "market_collateral",
        "market_debt",
        "market_config",
        "market_price",
        "tvl",
        "net_tvl",
        "deposit_value",
        "collateral_value",
        "debt_value",
        "utilization",
    ),
    "loans": ("event", ACCOUNT_EVENTS, "loans_originated", "liquidations", "flash_loan_volume"),
    "ptoken": ("ptoken_state", "ptoken_pool", "unlock_arrangement"),
    "positions": ("position", "position_digest", "position_summary"),
    "routes": ("swap_route",),
}
FAMILY_OF = {table: family for family, tables in TABLES.items() for table in tables}
