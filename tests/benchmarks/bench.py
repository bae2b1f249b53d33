"""What all parts share: a running ClickHouse, the folder of real data, and databases made for one part."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.importing.column_mapping import ColumnChoice
from analytics_service.importing.history import load_history
from analytics_service.importing.publication import publish
from analytics_service.importing.rows import HistoryRequest
from analytics_service.importing.time_parsing import TimeRules
from analytics_service.store.datasets.histories import PRICES
from analytics_service.store.migrations import migrate
from tests.benchmarks.harness import NotMeasured
from tests.doubles import Silent

# The variable that names the folder of the real data.
DATA = "ANALYTICS_TEST_DATA"


@dataclass(frozen=True, slots=True)
class Bench:
    """The input of a part.

    `settings` name a running ClickHouse; `given` is the folder of the real data, if there is one; `rows` are those of
    large databases, None for each part's default; `seed` decides which pages are drawn. `addresses` are those of
    `positions`.
    """

    settings: Settings
    given: Path | None
    rows: int | None
    seed: str
    addresses: int

    @property
    def folder(self) -> Path:
        """The folder of the real data. NotMeasured without one."""
        if self.given is None:
            raise NotMeasured(f"name the folder of the real data, or set {DATA}")
        return self.given

    @contextmanager
    def database(self, name: str) -> Iterator[Settings]:
        """Settings that name a new database with the whole schema, which is dropped afterwards."""
        settings = replace(self.settings, clickhouse_database=f"benchmark_{name}")
        with closing(Store(settings)) as store:
            store.execute(f"DROP DATABASE IF EXISTS {store.database} SYNC", in_database=False)
            migrate(store)
            try:
                yield settings
            finally:
                store.execute(f"DROP DATABASE {store.database} SYNC", in_database=False)

    @contextmanager
    def real_prices(self) -> Iterator[Settings]:
        """A database of the real prices."""
        with self.database("real") as settings:
            self.import_real_prices(settings)
            yield settings

    def import_real_prices(self, settings: Settings) -> None:
        """Import the real prices, over those that are there."""
        with closing(Store(settings)) as store:
            prices, assets = self.folder / "prices_hourly.csv.gz", self.folder / "assets.csv"
            columns = ColumnChoice(time="timestamp", asset_column="symbol", value="USD_price")
            request = HistoryRequest(PRICES, [prices], columns, TimeRules(unit="ms"), assets=assets)
            publish(store, load_history(store, request, datetime.now(UTC), Silent()), Silent())


def sql_path(settings: Settings) -> str:
    """The path of ClickHouse's HTTP interface that takes a statement for the database as its body."""
    who = {"user": settings.clickhouse_user, "password": settings.clickhouse_password}
    return f"/?{urlencode({**who, 'database': settings.clickhouse_database})}"
