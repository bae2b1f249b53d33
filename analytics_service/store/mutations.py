"""Deletes rows exactly once. A lightweight DELETE is a mutation, which has no time limit and outlives its client.

ClickHouse lists the last hundred mutations of each table. So a writer that repeats the steps of a rewrite looks there
first, and does not repeat a mutation that is under way or done.
"""

from analytics_service.clickhouse.cluster import quote_identifier
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import fill_placeholders
from analytics_service.errors import StoreUnavailable


def delete_rows(store: Store, table: str, statement: str, staged: str) -> None:
    """Execute a DELETE of the rows that a staging table lists, unless all servers have. StoreUnavailable while it is
    under way."""
    layout = store.layout
    parts = {**layout.on_all_servers("mutations"), "servers": layout.on_all_servers("one")["from"]}
    own = fill_placeholders(quote_identifier(table), layout.placeholders)
    state = store.query("read_mutation_state", parts, database=store.database, table=own, reading=staged)
    is_under_way, is_done = state.row(0)
    if is_under_way:
        raise StoreUnavailable(f"ClickHouse is still deleting rows of {table}.")
    if not is_done:
        store.execute(statement)
