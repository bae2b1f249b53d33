"""Exports into files: exact values, what readers are shown, and a whole file or none."""

import csv
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

from analytics_service.admin.export import export, find_view
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import Placeholders
from analytics_service.config.settings import Settings
from analytics_service.errors import OperationFailed, StoreUnavailable, UserError
from analytics_service.market.kinds import FOREVER
from analytics_service.market.spreadsheets import escape_formula
from analytics_service.store.ledger import new_version, record_rewrite
from tests.doubles import Silent
from tests.files import no_file_larger_than
from tests.integration.pages import commit, write
from tests.unit.test_spreadsheets import NUMBERS, SAFE, UNSAFE

# The first seconds of two months of 2026.
FEBRUARY, MARCH = (int(datetime(2026, month, 1, tzinfo=UTC).timestamp()) for month in (2, 3))
EXACT = Decimal("12345678901234567890.123456789012345678")


def exported(store: Store, path: Path, name: str, since: int = 0, until: int = FOREVER) -> int:
    """Export a view, and return the number of its rows."""
    return export(store, find_view(store, name), path, (since, until), Silent())


def rows(path: Path) -> list[tuple[str, int, Decimal]]:
    frame = pl.read_parquet(path)
    return list(frame.select("asset_id", pl.col("observed_at").dt.epoch("s"), "value_exact").iter_rows())


@pytest.fixture
def months(store: Store) -> Store:
    """Prices in January and February: the last second of a month, and the first."""
    commit(store, {"token;b": [(FEBRUARY - 1, EXACT)], "token;a": [(FEBRUARY - 1, Decimal(1))]})
    commit(store, {"token;a": [(FEBRUARY, Decimal(2)), (MARCH - 5, Decimal(3))]})
    return store


def test_a_file_has_the_rows_of_a_range_by_asset_and_time(months: Store, tmp_path: Path) -> None:
    """With its start, but not its end. A view without rows is a file without rows, and a file that is there is
    replaced."""
    path = tmp_path / "price.parquet"
    assert exported(months, path, "price") == 4
    assert rows(path) == [
        ("token;a", FEBRUARY - 1, Decimal(1)),
        ("token;a", FEBRUARY, Decimal(2)),
        ("token;a", MARCH - 5, Decimal(3)),
        ("token;b", FEBRUARY - 1, EXACT),
    ]
    assert exported(months, path, "price", since=FEBRUARY, until=MARCH - 5) == 1
    assert rows(path) == [("token;a", FEBRUARY, Decimal(2))]
    assert exported(months, path, "lend-rate") == 0
    assert rows(path) == []
    assert [file.name for file in tmp_path.iterdir()] == ["price.parquet"]


def test_rows_of_a_commit_that_has_not_ended_are_left_out(months: Store, tmp_path: Path) -> None:
    write(months, {"token;a": [(MARCH - 4, Decimal(9)), (MARCH, Decimal(9))]}, new_version(months))
    exported(months, tmp_path / "price.parquet", "price")
    assert rows(tmp_path / "price.parquet")[2] == ("token;a", MARCH - 5, Decimal(3))


class Disturbed(Store):
    """A store to which something happens while the rows of a file are read."""

    def __init__(self, settings: Settings, happens: Callable[["Disturbed"], None]) -> None:
        super().__init__(settings)
        self.reads = 0
        self._happens = happens

    def stream(self, query: str, parts: Placeholders, output: str, /, **parameters: object) -> Iterator[bytes]:
        for chunk in super().stream(query, parts, output, **parameters):
            # Without its last byte.
            yield chunk[:-1]
            self.reads += 1
            self._happens(self)
            yield chunk[-1:]


def rewrite(store: Store, second: int, value: str) -> None:
    """Correct the price of an asset as an import does."""
    version = new_version(store)
    commit(store, {"token;a": [(second, Decimal(value))]}, "import", version)
    record_rewrite(store, ["prices"], version, finished=1)


@pytest.mark.usefixtures("store")
def test_a_file_is_read_again_if_its_history_was_rewritten_meanwhile(settings: Settings, tmp_path: Path) -> None:
    """Up to five times."""

    def correct(store: Disturbed) -> None:
        if store.reads != 2:
            rewrite(store, MARCH - 5, "7")

    with closing(Disturbed(settings, correct)) as store:
        commit(store, {"token;a": [(FEBRUARY - 1, Decimal(1)), (MARCH - 5, Decimal(3))]})
        exported(store, tmp_path / "price.parquet", "price")
        assert rows(tmp_path / "price.parquet") == [("token;a", FEBRUARY - 1, 1), ("token;a", MARCH - 5, 7)]
        with pytest.raises(OperationFailed, match="rewritten during every attempt"):
            exported(store, tmp_path / "other.parquet", "price")
        assert store.reads == 2 + 5
    assert [file.name for file in tmp_path.iterdir()] == ["price.parquet"]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow"])
def test_a_file_that_is_not_whole_is_not_there(settings: Settings, tmp_path: Path, suffix: str) -> None:
    """ClickHouse breaks off, its user stops the command, or the disk is full."""

    class Broken(Store):
        ends: BaseException | None = None

        def stream(self, query: str, parts: Placeholders, output: str, /, **parameters: object) -> Iterator[bytes]:
            body = b"".join(super().stream(query, parts, output, **parameters))
            yield body[:-1]
            if self.ends:
                raise self.ends

    path = tmp_path / f"price.{suffix}"
    with closing(Broken(settings)) as store:
        commit(store, {"token;a": [(100, Decimal(1))]})
        with pytest.raises(StoreUnavailable, match="broke off its answer"):
            exported(store, path, "price")
        store.ends = KeyboardInterrupt()
        with pytest.raises(KeyboardInterrupt):
            exported(store, path, "price")
    with (
        closing(Store(settings)) as store,
        pytest.raises(OperationFailed, match=r"price\.\w+ cannot be written \(File too large\)"),
        no_file_larger_than(50),
    ):
        exported(store, path, "price")
    assert not list(tmp_path.iterdir())


# Types that files do not carry as they are, or that readers take for others.
ODD = """
CREATE VIEW odd AS SELECT
    'é,"' AS text, toUInt256('{greatest}') AS amount, toDecimal256('-1.5', 20) AS wide,
    toDecimal128('{exact}', 18) AS usd, toDateTime('2026-01-31 23:59:59', 'UTC') AS since, toDate('2026-01-31') AS day,
    CAST('x' AS Enum8('x' = 1)) AS kind, CAST(NULL AS Nullable(DateTime('UTC'))) AS ended, true AS flag,
    ['a', 'b'] AS list, toUInt64({large}) AS count
"""
GREATEST, LARGE = 2**256 - 1, 2**64 - 1
TYPES = {
    "text": pl.String,
    "amount": pl.String,
    "wide": pl.String,
    "usd": pl.Decimal(38, 18),
    "since": pl.Datetime("ms", "UTC"),
    "day": pl.Date,
    "kind": pl.String,
    "ended": pl.Datetime("ms", "UTC"),
    "flag": pl.Boolean,
    "list": pl.String,
    "count": pl.UInt64,
}
SINCE = datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC)
VALUES = ('é,"', str(GREATEST), "-1.5", EXACT, SINCE, date(2026, 1, 31), "x", None, True, "['a','b']", LARGE)


def test_values_are_exact_and_of_types_that_readers_know(store: Store, tmp_path: Path) -> None:
    """A view without a column of time is a single file, whatever the range."""
    store.execute(ODD.format(greatest=GREATEST, exact=EXACT, large=LARGE))
    for suffix in ("parquet", "arrow", "csv"):
        exported(store, tmp_path / f"odd.{suffix}", "odd", since=MARCH)
    for frame in (pl.read_parquet(tmp_path / "odd.parquet"), pl.read_ipc(tmp_path / "odd.arrow")):
        assert frame.schema == TYPES
        assert frame.rows() == [VALUES]
    with pa.ipc.open_file(tmp_path / "odd.arrow") as arrow:
        tables = arrow.read_all(), pa.parquet.read_table(tmp_path / "odd.parquet")
    for table in tables:
        assert tuple(table.to_pylist()[0].values()) == VALUES
    shown = pd.read_parquet(tmp_path / "odd.parquet").iloc[0]
    assert (shown["usd"], shown["since"], shown["amount"]) == (EXACT, pd.Timestamp(SINCE), str(GREATEST))
    asked = "SELECT usd, epoch(since), amount, typeof(usd), ended FROM read_parquet(?)"
    with duckdb.connect() as connection:
        answer = connection.execute(asked, [str(tmp_path / "odd.parquet")]).fetchone()
    assert answer == (EXACT, SINCE.timestamp(), str(GREATEST), "DECIMAL(38,18)", None)
    assert (tmp_path / "odd.csv").read_text("utf-8").splitlines() == [
        "text,amount,wide,usd,since,day,kind,ended,flag,list,count",
        f'"é,""",{GREATEST},-1.5,{EXACT},2026-01-31T23:59:59.000Z,2026-01-31,x,,true,"[\'a\',\'b\']",{LARGE}',
    ]


def test_formulas_in_csv_are_text_to_a_spreadsheet(store: Store, tmp_path: Path) -> None:
    """In ClickHouse as in Python; files with types have the text itself."""
    texts = [*UNSAFE, *NUMBERS, *SAFE]
    listed = ", ".join(f"unhex('{text.encode().hex()}')" for text in texts)
    store.execute(
        f"CREATE VIEW formulas AS SELECT tupleElement(t, 1) AS number, tupleElement(t, 2) AS text "
        f"FROM (SELECT arrayJoin(arrayZip(range({len(texts)}), [{listed}])) AS t)"
    )
    for suffix in ("csv", "parquet"):
        exported(store, tmp_path / f"formulas.{suffix}", "formulas")
    with (tmp_path / "formulas.csv").open(encoding="utf-8", newline="") as file:
        expected = pl.DataFrame({"text": texts}).select(escape_formula(pl.col("text"))).to_series().to_list()
        assert [row["text"] for row in csv.DictReader(file)] == expected
    assert pl.read_parquet(tmp_path / "formulas.parquet")["text"].to_list() == texts


def test_a_name_that_is_none_is_refused_with_those_that_are(store: Store) -> None:
    with pytest.raises(UserError, match=r"'lend_rates'\. The views are: .*price.*"):
        find_view(store, "lend_rates")
    assert [find_view(store, name).name for name in ("deposits", "lend-rate", "lend_rate")] == [
        "deposits_usd",
        "lend_rate",
        "lend_rate",
    ]
    with pytest.raises(UserError, match="'price_at'"):
        find_view(store, "price_at")
