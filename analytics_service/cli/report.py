"""The report of `status`: ClickHouse, schema, where the data is from and how new it is."""

from contextlib import closing
from datetime import datetime, timedelta

from analytics_service.config import Settings
from analytics_service.embedded.clickhouse import attached
from analytics_service.errors import AccessRefused, AnalyticsError, StoreUnavailable
from analytics_service.store.admission import how_to_decide, read_holdings
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Head, Origin, read_ledger
from analytics_service.store.migrations import pending
from analytics_service.store.server import address_of


def report(settings: Settings, now: datetime) -> tuple[list[str], bool]:
    """The lines to show, and whether ClickHouse answers and its schema is up to date."""
    reached = attached(settings)
    if reached is None:
        return [
            f"ClickHouse  not running in {settings.data_dir}; start it with `analytics-service up`, "
            "or set ANALYTICS_CLICKHOUSE_URL"
        ], False
    with closing(Store(reached)) as store:
        try:
            return _report(reached, store, now)
        except (StoreUnavailable, AccessRefused) as error:
            # They name the URL themselves.
            return [f"Problem     {error}"], False
        except AnalyticsError as error:
            return [f"ClickHouse  {address_of(reached)}", f"Problem     {error}"], False


def _report(settings: Settings, store: Store, now: datetime) -> tuple[list[str], bool]:
    lines = [f"ClickHouse  {store.server_version()} at {address_of(settings)}, database {store.database}"]
    missing = pending(store)
    if missing:
        names = ", ".join(migration.name for migration in missing)
        return [*lines, f"Schema      pending: {names}; run `analytics-service migrate`"], False
    lines.append("Schema      up to date")
    ledger, holdings = read_ledger(store), read_holdings(store)
    lines += [_origin(origin) for origin in sorted(ledger.origins, key=str)]
    lines += [f"Problem     {how_to_decide(holdings)}"] if holdings.is_undecided else []
    lines += [_family(head, now) for _, head in sorted(ledger.heads.items())] or ["Data        no snapshot yet"]
    return lines, True


def _origin(origin: Origin) -> str:
    return f"Source      {origin}{', which is simulated' if origin.simulated else ''}"


def _family(head: Head, now: datetime) -> str:
    age = timedelta(seconds=int((now - head.instant).total_seconds()))
    return f"{head.family:11} newest snapshot {head.instant:%Y-%m-%dT%H:%M:%SZ}, {age} old"
