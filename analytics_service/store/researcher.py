"""The user for people (sql/researcher.sql) on a ClickHouse of one's own; the embedded server's has the same grants."""

import hashlib
import logging
import secrets

from analytics_service.config.values import RESEARCH
from analytics_service.errors import StoreFailure
from analytics_service.store.connection import Store
from analytics_service.store.sql import filled, scripts, statements

log = logging.getLogger(__name__)


def researcher_script(**placeholders: str) -> list[str]:
    """The statements of sql/researcher.sql with these placeholders filled."""
    (script,) = scripts("")
    return statements(filled(script.read_text("utf-8"), {**placeholders, "research": RESEARCH}))


def researcher_grants(readable: str) -> list[str]:
    """The GRANT statements without their user, as users.xml has them. `readable` may be read, such as `*.*`."""
    script = researcher_script(user="", readable=readable)
    return [sql.removesuffix(" TO") for sql in script if sql.startswith("GRANT ")]


def make_researcher(store: Store, name: str) -> str | None:
    """Make the user, or renew the limits and grants of one that was made before; the password of a new user, or None.

    StoreFailure for a user of another origin, or when the service's user may not make users.
    """
    found = store.frame("researcher_limits", user=name).row(0, named=True)
    if found["users"] and not found["made"]:
        raise StoreFailure(
            f"ClickHouse has a user {name} that `migrate --researcher` has not made, and which stays as it is. "
            "Choose another name."
        )
    if not found["refuses_views"]:
        log.warning(
            "On this server researchers may make materialized views, which run within the service's inserts and fail "
            "them where they fail. Set ignore_empty_sql_security_in_create_view_query to 0 in its configuration."
        )
    password, database = secrets.token_urlsafe(32), f"`{store.database}`"
    digest = hashlib.sha256(password.encode()).hexdigest()
    limits = {"threads": str(found["threads"]), "memory": str(found["memory"])}
    for sql in researcher_script(user=f"`{name}`", hash=digest, database=database, readable=f"{database}.*", **limits):
        try:
            store.execute_outside_database(sql)
        except StoreFailure as error:
            raise StoreFailure(
                f"The user {name} could not be made. {error} ANALYTICS_CLICKHOUSE_USER must be a user that may make "
                "users and grant what it has (access_management in users.xml)."
            ) from error
    return None if found["users"] else password
