"""Takes out rows, once: a lightweight DELETE is a mutation, which nothing bounds and nobody can wait for safely.

ClickHouse goes on with a mutation when the client's time is over, and keeps a list of the last hundred of each table.
So whoever repeats a rewrite's steps looks there first, and does not begin again what is under way or done.
"""

from analytics_service.clickhouse.cluster import quote_identifier
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import fill_placeholders
from analytics_service.errors import StoreUnavailable


def delete_rows(store: Store, table: str, statement: str, staged: str) -> None:
    """Execute a DELETE of rows that a staging table lists, unless all servers have. StoreUnavailable while they are at
    it."""
    layout = store.layout
    parts = {**layout.on_all_servers("mutations"), "servers": layout.on_all_servers("one")["from"]}
    own = fill_placeholders(quote_identifier(table), layout.placeholders)
    state = store.query("read_mutation_state", parts, database=store.database, table=own, reading=staged)
    is_under_way, is_done = state.row(0)
    if is_under_way:
        raise StoreUnavailable(f"ClickHouse is still taking rows out of {table}.")
    if not is_done:
        store.execute(statement)
