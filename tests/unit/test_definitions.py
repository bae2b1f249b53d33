"""Files of ClickHouse's definitions that a full disk has cut short."""

from pathlib import Path

import pytest

from analytics_service.embedded.definitions import Definitions

WHOLE = "ATTACH VIEW _ UUID '1'\nAS SELECT 1\n"


class Data:
    """A database with views and tables, as ClickHouse keeps them."""

    def __init__(self, server: Path) -> None:
        self.server, self.data = server, server / "data"
        self.store = self.data / "store/abc/abc-1"
        self.store.mkdir(parents=True)
        (self.data / "metadata").mkdir()
        (self.data / "data/analytics").mkdir(parents=True)
        (self.data / "metadata/analytics").symlink_to("../store/abc/abc-1")
        self.database = self.data / "metadata/analytics.sql"
        self.database.write_text("ATTACH DATABASE _ UUID 'abc-1'\nENGINE = Atomic\n")

    def definition(self, name: str, content: str = WHOLE) -> Path:
        path = self.store / f"{name}.sql"
        path.write_text(content)
        return path

    def table(self, name: str, content: str, *parts: str) -> Path:
        folder = self.data / f"store/def/def-{name}"
        for part in parts:
            (folder / part).mkdir(parents=True)
            (folder / part / "checksums.txt").touch()
        (self.data / "data/analytics" / name).symlink_to(f"../store/def/def-{name}/")
        return self.definition(name, content)

    def mend(self) -> None:
        Definitions(self.server).mend()


@pytest.fixture
def data(tmp_path: Path) -> Data:
    return Data(tmp_path)


def test_views_and_empty_tables_without_a_whole_definition_are_left_to_who_made_them(
    data: Data, caplog: pytest.LogCaptureFixture
) -> None:
    whole = [data.definition("price"), data.table("event", WHOLE, "202601_1_1_0"), data.database]
    damaged = [data.definition("tvl", ""), data.definition("market", WHOLE[:30]), data.table("cell", "")]
    data.mend()
    assert all(path.exists() for path in whole)
    assert not any(path.exists() for path in damaged)
    assert sorted(caplog.messages) == [
        f"The definition of analytics.{name} was damaged, and is made again." for name in ("cell", "market", "tvl")
    ]


def test_a_table_with_rows_is_named_with_what_to_do_and_keeps_them(
    data: Data, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = data.table("observation", "", "202601_1_1_0")
    data.mend()
    assert not damaged.exists()
    rows = data.data / "store/def/def-observation"
    assert (rows / "202601_1_1_0/checksums.txt").exists()
    assert caplog.messages == [
        f"The definition of the table analytics.observation is damaged, so its rows, in {rows}, cannot be read. What "
        "cannot be derived again comes back with the last backup: `analytics-service restore FILE --replace`."
    ]


def test_a_database_gets_its_definition_back(data: Data) -> None:
    content = data.database.read_text()
    data.database.write_text("")
    unknown = data.data / "metadata/other.sql"
    unknown.write_text("")
    data.mend()
    assert data.database.read_text() == content
    assert not unknown.exists()


def test_a_definition_that_clickhouse_names_is_mended_whatever_its_end(data: Data) -> None:
    cut = data.definition("market", "ATTACH VIEW _ UUID '1'\n")
    definitions = Definitions(data.server)
    definitions.mend()
    assert cut.exists()
    assert not definitions.mend_named("Code: 62. DB::Exception: Address already in use")
    assert definitions.mend_named(
        "Code: 62. DB::Exception: Syntax error (in file store/abc/abc-1/market.sql): failed: Cannot parse definition "
        "from metadata file store/abc/abc-1/market.sql. (SYNTAX_ERROR)"
    )
    assert not cut.exists()
