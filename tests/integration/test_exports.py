"""Exports into files: months, exact values, what is written again, and what an interruption leaves."""

import csv
import json
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

from analytics_service.config.settings import Settings
from analytics_service.errors import ExportFailed, ExportRefused, StoreUnavailable
from analytics_service.exports.folder import ExportFolder
from analytics_service.exports.views import exported_views
from analytics_service.exports.writing import Export, ExportSummary, Selection
from analytics_service.market.kinds import FOREVER
from analytics_service.market.spreadsheets import escaped
from analytics_service.store.connection import Store
from analytics_service.store.histories import HISTORIES
from analytics_service.store.ledger import new_version, record_rewrite
from analytics_service.store.migrations import migrate
from analytics_service.store.sql import Parts
from tests.integration.conftest import Simulated
from tests.integration.imports import Progress
from tests.integration.pages import asset, commit, write
from tests.stored import write_assets
from tests.unit.test_spreadsheets import NUMBERS, SAFE, UNSAFE

# The first seconds of three months of 2026.
JANUARY, FEBRUARY, MARCH = (int(datetime(2026, month, 1, tzinfo=UTC).timestamp()) for month in (1, 2, 3))
EXACT = Decimal("12345678901234567890.123456789012345678")


def export(
    store: Store, folder: Path, *names: str, since: int = 0, until: int = FOREVER, suffix: str = "parquet"
) -> ExportSummary:
    done = Export(store, ExportFolder(folder), Selection(since, until, suffix), Progress())
    for view in exported_views(store, names):
        done.add(view)
    return done.summary


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def rows(folder: Path, name: str) -> list[tuple[str, int, Decimal]]:
    frame = pl.read_parquet(folder / name)
    return list(frame.select("asset_id", pl.col("observed_at").dt.epoch("s"), "value_exact").iter_rows())


@pytest.fixture
def months(store: Store) -> Store:
    """Prices in January and February: the last second of a month, and the first."""
    commit(store, {"token;b": [(FEBRUARY - 1, EXACT)], "token;a": [(FEBRUARY - 1, Decimal(1))]})
    commit(store, {"token;a": [(FEBRUARY, Decimal(2)), (MARCH - 5, Decimal(3))]})
    return store


def test_there_is_a_file_for_each_month_with_rows_by_asset_and_time(months: Store, tmp_path: Path) -> None:
    done = export(months, tmp_path, "price", "lend-rate")
    assert files(tmp_path) == ["export.json", "price/2026-01.parquet", "price/2026-02.parquet"]
    assert rows(tmp_path, "price/2026-01.parquet") == [
        ("token;a", FEBRUARY - 1, Decimal(1)),
        ("token;b", FEBRUARY - 1, EXACT),
    ]
    assert rows(tmp_path, "price/2026-02.parquet") == [
        ("token;a", FEBRUARY, Decimal(2)),
        ("token;a", MARCH - 5, Decimal(3)),
    ]
    assert done.empty == ["lend_rate"]
    listed = json.loads((tmp_path / "export.json").read_text())["files"]
    assert {name: (file["start"], file["end"]) for name, file in listed.items()} == {
        "price/2026-01.parquet": (JANUARY, FEBRUARY),
        "price/2026-02.parquet": (FEBRUARY, MARCH - 4),
    }
    assert done.written == {name: file["bytes"] for name, file in listed.items()}


def test_a_range_has_its_start_but_not_its_end(months: Store, tmp_path: Path) -> None:
    export(months, tmp_path, "price", since=FEBRUARY, until=MARCH - 5)
    assert files(tmp_path) == ["export.json", "price/2026-02.parquet"]
    assert rows(tmp_path, "price/2026-02.parquet") == [("token;a", FEBRUARY, Decimal(2))]
    # Another range is another content; the months outside of it stay.
    export(months, tmp_path, "price", until=FEBRUARY)
    export(months, tmp_path, "price", since=FEBRUARY)
    assert len(rows(tmp_path, "price/2026-02.parquet")) == 2
    assert len(rows(tmp_path, "price/2026-01.parquet")) == 2


def test_rows_of_a_run_that_has_not_ended_are_left_out(months: Store, tmp_path: Path) -> None:
    write(months, {"token;a": [(MARCH - 4, Decimal(9)), (MARCH, Decimal(9))]}, new_version(months))
    export(months, tmp_path, "price")
    assert rows(tmp_path, "price/2026-02.parquet")[-1] == ("token;a", MARCH - 5, Decimal(3))
    assert "price/2026-03.parquet" not in files(tmp_path)


def rewrite(store: Store, second: int, value: str) -> None:
    """Correct the price of an asset as an import does."""
    version = new_version(store)
    commit(store, {"token;a": [(second, Decimal(value))]}, "import", version)
    record_rewrite(store, ["prices"], version, finished=1)


@pytest.mark.slow
def test_only_files_whose_data_have_changed_are_written_again(months: Store, tmp_path: Path) -> None:
    """The next tick changes the newest month, a correction those from its first second on, and other definitions all,
    because the files have symbols."""
    january, february, march = (f"price/2026-0{month}.parquet" for month in (1, 2, 3))
    assert set(export(months, tmp_path, "price").written) == {january, february}
    assert set(export(months, tmp_path, "price").written) == set()
    commit(months, {"token;a": [(MARCH + 5, Decimal(4))]})
    assert set(export(months, tmp_path, "price").written) == {february, march}
    rewrite(months, MARCH - 5, "7")
    assert set(export(months, tmp_path, "price").written) == {february, march}
    assert rows(tmp_path, february)[-1] == ("token;a", MARCH - 5, Decimal(7))
    rewrite(months, FEBRUARY - 1, "8")
    assert set(export(months, tmp_path, "price").written) == {january, february, march}
    write_assets(months, [asset("a"), asset("new")], new_version(months))
    assert set(export(months, tmp_path, "price").written) == {january, february, march}


@pytest.mark.slow
def test_files_that_are_missing_or_not_whole_are_written_again(months: Store, tmp_path: Path) -> None:
    export(months, tmp_path, "price")
    (tmp_path / "price/2026-01.parquet").unlink()
    (tmp_path / "price/2026-02.parquet").write_bytes(b"PAR1")
    assert len(export(months, tmp_path, "price").written) == 2


@pytest.mark.slow
def test_files_of_months_that_have_no_rows_any_more_are_removed(months: Store, tmp_path: Path) -> None:
    """As after a restore. Those of other formats and ranges stay."""
    export(months, tmp_path, "price", suffix="csv")
    export(months, tmp_path, "price")
    months.execute(f"ALTER TABLE observation DELETE WHERE observed_at < {FEBRUARY} SETTINGS mutations_sync = 1")
    export(months, tmp_path, "price", since=FEBRUARY)
    assert "price/2026-01.parquet" in files(tmp_path)
    export(months, tmp_path, "price")
    assert files(tmp_path) == ["export.json", "price/2026-01.csv", "price/2026-02.csv", "price/2026-02.parquet"]


class Disturbed(Store):
    """A store to which something happens while the rows of a file are read."""

    def __init__(self, settings: Settings, happens: Callable[["Disturbed"], None]) -> None:
        super().__init__(settings)
        self.reads = 0
        self._happens = happens

    def stream(self, query: str, parts: Parts = (), output: str = "Native", /, **parameters: object) -> Iterator[bytes]:
        chunks = super().stream(query, parts, output, **parameters)
        yield next(chunks)
        self.reads += 1
        self._happens(self)
        yield from chunks


@pytest.mark.usefixtures("store")
def test_a_file_is_read_again_if_its_history_was_rewritten_meanwhile(settings: Settings, tmp_path: Path) -> None:
    def correct_once(store: Disturbed) -> None:
        if store.reads == 1:
            rewrite(store, MARCH - 5, "7")

    with closing(Disturbed(settings, correct_once)) as store:
        commit(store, {"token;a": [(FEBRUARY - 1, Decimal(1)), (MARCH - 5, Decimal(3))]})
        export(store, tmp_path, "price")
        assert rows(tmp_path, "price/2026-02.parquet") == [("token;a", MARCH - 5, Decimal(7))]
        # January was read before and after the correction.
        assert store.reads == 3


@pytest.mark.slow
def test_an_export_gives_up_if_the_store_is_changed_again_and_again(settings: Settings, tmp_path: Path) -> None:
    with closing(Disturbed(settings, lambda store: rewrite(store, 100, "7"))) as store:
        migrate(store)
        commit(store, {"token;a": [(100, Decimal(1))]})
        with pytest.raises(ExportFailed, match="again and again"):
            export(store, tmp_path, "price")
    assert files(tmp_path) == ["export.json"]


@pytest.mark.slow
def test_an_export_that_is_interrupted_leaves_whole_files_and_goes_on(settings: Settings, tmp_path: Path) -> None:
    """The store goes away, or its user stops the command."""
    ends: list[BaseException] = [KeyboardInterrupt(), StoreUnavailable("gone")]

    def end_in_february(store: Disturbed) -> None:
        if store.reads > 1 and ends:
            raise ends.pop()

    with closing(Disturbed(settings, end_in_february)) as store:
        migrate(store)
        commit(store, {"token;a": [(FEBRUARY - 1, Decimal(1)), (MARCH - 5, Decimal(3))]})
        for end in (StoreUnavailable, KeyboardInterrupt):
            with pytest.raises(end):
                export(store, tmp_path, "price")
            assert files(tmp_path) == ["export.json", "price/2026-01.parquet"]
        assert set(export(store, tmp_path, "price").written) == {"price/2026-02.parquet"}


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


@pytest.fixture
def odd(store: Store) -> Store:
    store.execute(ODD.format(greatest=GREATEST, exact=EXACT, large=LARGE))
    return store


def test_values_are_exact_and_of_types_that_readers_know(odd: Store, tmp_path: Path) -> None:
    """A view without a column of time is a single file, whatever the range."""
    for suffix in ("parquet", "arrow", "csv"):
        export(odd, tmp_path, "odd", suffix=suffix, since=MARCH)
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
        '"text","amount","wide","usd","since","day","kind","ended","flag","list","count"',
        f'"é,""","{GREATEST}","-1.5",{EXACT},"2026-01-31T23:59:59.000Z","2026-01-31","x",,true,"[\'a\',\'b\']",{LARGE}',
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
        export(store, tmp_path, "formulas", suffix=suffix)
    with (tmp_path / "formulas.csv").open(encoding="utf-8", newline="") as file:
        expected = pl.DataFrame({"text": texts}).select(escaped(pl.col("text"))).to_series().to_list()
        assert [row["text"] for row in csv.DictReader(file)] == expected
    assert pl.read_parquet(tmp_path / "formulas.parquet")["text"].to_list() == texts


@pytest.mark.slow
def test_a_view_is_written_again_after_any_run(odd: Store, tmp_path: Path) -> None:
    """Its rows may depend on whatever there is. So is one whose columns have changed."""
    odd.execute(f"CREATE VIEW acts AS SELECT number AS n, toDateTime({MARCH} - number, 'UTC') AS time FROM numbers(2)")
    every = {"acts/2026-02.parquet", "acts/2026-03.parquet", "odd.parquet"}
    assert set(export(odd, tmp_path, "acts", "odd").written) == every
    assert set(export(odd, tmp_path, "acts", "odd").written) == set()
    commit(odd, {"token;a": [(100, Decimal(1))]})
    assert set(export(odd, tmp_path, "acts", "odd").written) == every
    odd.execute("CREATE OR REPLACE VIEW odd AS SELECT 1 AS text")
    assert set(export(odd, tmp_path, "acts", "odd").written) == {"odd.parquet"}


# Of the columns of all views but those that take parameters.
COLUMNS = """
SELECT table, name, match(type, 'Decimal|Float') AS is_number
FROM system.columns
WHERE database = currentDatabase()
  AND table IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine = 'View')
"""


def test_all_are_every_view_but_those_that_take_parameters(simulated: Simulated) -> None:
    """Histories among them."""
    views = {row["table"] for row in simulated.rows(COLUMNS)}
    assert {view.name for view in exported_views(simulated.store, ["all"])} == views
    assert {history.name for history in HISTORIES} | {"position_now", "account"} < views
    assert "price_at" not in views


@pytest.mark.slow
def test_all_are_the_rows_of_every_view_but_those_that_take_parameters(simulated: Simulated, tmp_path: Path) -> None:
    """Histories among them. Each has as many rows as in SQL, and the same sums."""
    columns: dict[str, list[str]] = {}
    for row in simulated.rows(COLUMNS):
        columns.setdefault(row["table"], []).extend([row["name"]] if row["is_number"] else [])
    # Nothing is in doubt, no day is over, and an empty view has no file.
    for view in ("anomalies", "price_daily", "lend_rate_daily", "borrow_rate_daily"):
        columns.pop(view)
    export(simulated.store, tmp_path, "all")
    assert {path.stem if path.is_file() else path.name for path in tmp_path.iterdir()} == {*columns, "export"}
    assert {history.name for history in HISTORIES} < columns.keys()
    assert "price_at" not in columns
    for view, numbers in columns.items():
        frame = pl.read_parquet([*tmp_path.glob(f"{view}/*"), *tmp_path.glob(f"{view}.*")])
        sums = ", ".join(["count()", *(f"sum(toFloat64(ifNull(v.{name}, 0))) AS {name}" for name in numbers)])
        (expected,) = simulated.rows(f"SELECT {sums} FROM {view} AS v")
        found = [frame.height, *(float(frame[name].sum()) for name in numbers)]
        assert found == pytest.approx(list(expected.values()), rel=1e-12), view


def test_a_name_that_is_none_is_refused_with_those_that_are(store: Store) -> None:
    with pytest.raises(ExportRefused, match=r"'lend_rates'\. Did you mean lend_rate\? There are: .*price.*; or all\."):
        exported_views(store, ["price", "lend_rates"])
    same = exported_views(store, ["deposits", "deposits_usd", "lend-rate", "lend_rate"])
    assert [view.name for view in same] == ["deposits_usd", "lend_rate"]
