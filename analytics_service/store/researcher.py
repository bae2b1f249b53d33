"""Makes the user for researchers (sql/researcher.sql) on a ClickHouse server. The embedded server has it built in."""

import hashlib
import secrets

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import fill_placeholders, split_statements, sql_scripts
from analytics_service.errors import StoreFailure

_QUERIES = 4


def fixed_settings(memory: int) -> dict[str, int | None]:
    """Settings that researchers may not change, because they affect more than one query; None keeps the default. All
    queries together may use `memory` bytes of memory, and as much disk for temporary files."""
    return {
        # Grants allow reading only. A query that may write continues after its client has gone; settings may change.
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
        # Results that clients let the server buffer until the query ends are on disk and do not count there.
        "max_result_bytes": memory // _QUERIES,
        # The limit on temporary files does not hold for sorts and joins, so these stay in memory.
        "max_bytes_before_external_sort": 0,
        "max_bytes_ratio_before_external_sort": 0,
        "max_bytes_before_external_join": 0,
        "max_bytes_ratio_before_external_join": 0,
        "join_algorithm": None,
        # The query cache, which /play asks for, counts against no limit, so it takes nothing of researchers.
        "query_cache_max_size_in_bytes": 1,
        # These decide whose query ends when the server's memory runs out.
        "memory_overcommit_ratio_denominator": None,
        "memory_overcommit_ratio_denominator_for_user": None,
        "max_network_bandwidth_for_user": None,
        "max_network_bandwidth_for_all_users": None,
        # The log of thousands of quick queries a second, or of unbounded texts, would fill memory and disk.
        "log_queries": 1,
        "log_queries_min_query_duration_ms": 10_000,
        "log_queries_cut_to_length": 2000,
        "log_query_settings": 0,
        # Nothing else bounds the time and memory of parsing and analysis, or texts of settings.
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
    """The GRANT statements as users.xml has them, without a user. `readable` names the readable tables, such as
    `*.*`."""
    script = researcher_script(user="", readable=readable, on_cluster="")
    return [sql.partition(" TO")[0] for sql in script if sql.startswith("GRANT ")]


def make_researcher(store: Store, name: str) -> str | None:
    """Create the user, or renew the limits and grants of a user that this function created. Returns the password of a
    new user, else None. StoreFailure for any other user, or if the service's user may not create users."""
    found = store.query("read_researcher_limits", user=name).row(0, named=True)
    if found["users"] and not found["made"]:
        raise StoreFailure(
            f"ClickHouse has a user {name} that `migrate --researcher` did not create and will not change. Choose "
            "another name."
        )
    password, database = secrets.token_urlsafe(32), f"`{store.database}`"
    digest = hashlib.sha256(password.encode()).hexdigest()
    fixed = {name: value for name, value in fixed_settings(found["memory"]).items() if name in found["settings"]}
    lines = [f"{name}{'' if value is None else f' = {value}'} READONLY" for name, value in fixed.items()]
    lines += [f"{name} = '{value}'" for name, value in store.layout.reading_settings.items()]
    limits = {"threads": str(found["threads"]), "fixed": ", ".join(lines)}
    for sql in researcher_script(user=f"`{name}`", hash=digest, database=database, readable=f"{database}.*", **limits):
        # On a cluster, a server that lacks the user would create it with a password that nobody knows.
        if found["users"] and sql.startswith("CREATE USER"):
            continue
        try:
            store.execute(sql, in_database=False)
        except StoreFailure as error:
            raise StoreFailure(
                f"The user {name} could not be created. {error} ANALYTICS_CLICKHOUSE_USER must be allowed to create "
                "users and to grant its own privileges (access_management in users.xml)."
            ) from error
    return None if found["users"] else password
