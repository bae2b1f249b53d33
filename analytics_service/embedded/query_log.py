"""The log of queries that outlives the embedded server, whose own log is lost when it ends."""

import logging
from contextlib import closing

from analytics_service.config.settings import Settings
from analytics_service.errors import AnalyticsError
from analytics_service.store.connection import Store
from analytics_service.store.sql import scripts, statements

log = logging.getLogger(__name__)


def keep_query_log(settings: Settings) -> None:
    """Make the server keep the entries that operators need. A failure is only logged."""
    with closing(Store(settings)) as store:
        try:
            # The view can be created only after the server has created its own table.
            store.execute("SYSTEM FLUSH LOGS", in_database=False)
            for script in scripts("embedded"):
                for statement in statements(script.read_text("utf-8")):
                    store.execute(statement, in_database=False)
        except AnalyticsError as error:
            log.warning("Queries are not logged: %s", error)
