"""The tables of each family of the ledger, in addition to its observations. Definitions of assets are not listed,
because several families write them."""

from collections.abc import Mapping, Sequence

from analytics_service.store.events import ACCOUNT_EVENTS

TABLES: Mapping[str, Sequence[str]] = {
    "prices": (),
    "rates": (),
    "markets": ("market_lend", "market_collateral", "market_debt", "market_config", "market_price"),
    "loans": ("event", ACCOUNT_EVENTS, "flash_loan_volume"),
    "ptoken": ("ptoken_state", "ptoken_pool", "unlock_arrangement"),
    "positions": ("position", "position_digest", "position_summary"),
    "routes": ("swap_route",),
}
