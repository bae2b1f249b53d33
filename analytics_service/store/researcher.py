"""The user for people (sql/researcher.sql) on a ClickHouse of one's own; the embedded server's has the same grants."""

import hashlib
import secrets

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import fill_placeholders, split_statements, sql_scripts
from analytics_service.errors import StoreFailure

_QUERIES = 4


def fixed_settings(memory: int) -> dict[str, int | None]:
    """Settings that researchers may not change, because they reach beyond a query of theirs; None leaves the default.

    Together they have `memory` bytes of memory, and as much disk for temporary files.
    """
    return {
        # They only read, as their grants say, and may change settings. Whose query can write goes on without a client.
        "readonly": 2,
        "cancel_http_readonly_queries_on_client_close": 1,
        # The service's queries have priority 1.
        "priority": 2,
        "low_priority_query_wait_time_ms": None,
        "os_thread_priority": None,
        "os_threads_nice_value_query": None,
        "max_concurrent_queries_for_user": _QUERIES,
        "max_memory_usage_for_user": memory,
        "max_temporary_data_on_disk_size_for_user": memory,
        # What waits for the end of a query, as clients may ask for, waits on disk and does not count there.
        "max_result_bytes": memory // _QUERIES,
        # That limit does not hold for sorts and joins, so these stay in memory.
        "max_bytes_before_external_sort": 0,
        "max_bytes_ratio_before_external_sort": 0,
        "max_bytes_before_external_join": 0,
        "max_bytes_ratio_before_external_join": 0,
        "join_algorithm": None,
        # Nobody counts what stays in memory after a query: the cache, which /play asks for, takes nothing of theirs.
        "query_cache_max_size_in_bytes": 1,
        # Whose query ends when the server's memory runs out.
        "memory_overcommit_ratio_denominator": None,
        "memory_overcommit_ratio_denominator_for_user": None,
        "max_network_bandwidth_for_user": None,
        "max_network_bandwidth_for_all_users": None,
        # Thousands of quick queries a second, and texts without bounds, would fill memory and disk with their log.
        "log_queries_min_query_duration_ms": 10_000,
        "log_queries_cut_to_length": 2000,
        "log_query_settings": 0,
        # Neither time nor memory of parsing and analysis is bounded, nor are texts of settings.
        "max_query_size": None,
        "max_ast_depth": None,
        "max_ast_elements": None,
        "max_expanded_ast_elements": None,
        "max_parser_depth": None,
        "max_parser_backtracks": None,
        "workload": None,
    }


def researcher_script(**placeholders: str) -> list[str]:
    """The statements of sql/researcher.sql with these placeholders filled."""
    (script,) = sql_scripts("")
    return split_statements(fill_placeholders(script.read_text("utf-8"), placeholders))


def researcher_grants(readable: str) -> list[str]:
    """The GRANT statements without their user, as users.xml has them. `readable` may be read, such as `*.*`."""
    script = researcher_script(user="", readable=readable, on_cluster="")
    return [sql.partition(" TO")[0] for sql in script if sql.startswith("GRANT ")]


def make_researcher(store: Store, name: str) -> str | None:
    """Make the user, or renew the limits and grants of one that was made before; the password of a new user, or None.

    StoreFailure for a user of another origin, or when the service's user may not make users.
    """
    found = store.query("read_researcher_limits", user=name).row(0, named=True)
    if found["users"] and not found["made"]:
        raise StoreFailure(
            f"ClickHouse has a user {name} that `migrate --researcher` has not made, and which stays as it is. "
            "Choose another name."
        )
    password, database = secrets.token_urlsafe(32), f"`{store.database}`"
    digest = hashlib.sha256(password.encode()).hexdigest()
    fixed = {name: value for name, value in fixed_settings(found["memory"]).items() if name in found["settings"]}
    lines = [f"{name}{'' if value is None else f' = {value}'} READONLY" for name, value in fixed.items()]
    lines += [f"{name} = '{value}'" for name, value in store.layout.reading_settings.items()]
    limits = {"threads": str(found["threads"]), "fixed": ", ".join(lines)}
    for sql in researcher_script(user=f"`{name}`", hash=digest, database=database, readable=f"{database}.*", **limits):
        # A server of the cluster that lacks the user would get one with a password that nobody is told.
        if found["users"] and sql.startswith("CREATE USER"):
            continue
        try:
            store.execute(sql, in_database=False)
        except StoreFailure as error:
            raise StoreFailure(
                f"The user {name} could not be made. {error} ANALYTICS_CLICKHOUSE_USER must be a user that may make "
                "users and grant what it has (access_management in users.xml)."
            ) from error
    return None if found["users"] else password
