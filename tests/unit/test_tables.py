"""Files as tables of text, and the files of rejected rows."""

import gzip
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from shutil import rmtree

import polars as pl
import pytest

from analytics_service.errors import ImportRefused
from analytics_service.imports.history_files import load_history
from analytics_service.imports.opening import open_table
from analytics_service.imports.presets import PRICES
from analytics_service.imports.reading import HistoryRequest
from analytics_service.imports.rejected import RejectedFile
from analytics_service.imports.tables import Table
from tests.doubles import Silent
from tests.unit.history_files import AT, HEADER, loaded, rows_of, written

ROW = f"{HEADER}1704067200,ETH,1\n"
BAD = pl.DataFrame({"column 0": ["1"], "column 1": ["X"], "column 2": ["-1"], "line": [2], "reason": ["it is bad"]})


def rejected(path: Path) -> list[str]:
    """The lines of the file of rows that are rejected of a file."""
    request = HistoryRequest(PRICES, [path], new_assets=True, skip_invalid=True)
    (file,) = load_history(None, request, AT, Silent(), keep_rejected=True).rejected_files
    assert file == Path(f"{path}.rejected.csv")
    return file.read_text().splitlines()


def test_line_numbers_are_those_of_an_editor(tmp_path: Path) -> None:
    """With Windows line ends, a byte order mark, quotes, an empty line between rows and some at the end."""
    text = f"\ufeff{HEADER}" + '"1704067200","A","1"\nX,A,1\n\n1704067201 , B,"2"\nY,A,1\n \n\n'
    lines = rejected(written(tmp_path, text.replace("\n", "\r\n")))
    assert [line.split(",")[3] for line in lines] == ["line", "3", "6"]


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        pytest.param("a.csv", bytes, marks=pytest.mark.slow),
        ("a.csv.gz", partial(gzip.compress, compresslevel=1)),
    ],
)
def test_a_long_file_is_read_in_blocks_with_continuous_line_numbers(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    count, start = 1_000_000, 10**9
    rows = (f"{start + n},AAA,{n if n % 100_000 else 'bad'}" for n in range(count))
    path = written(tmp_path, pack((HEADER + "\n".join(rows) + "\n" * 1000).encode()), name)
    table = open_table(path)
    sizes = [size for _, size in table.blocks()]
    assert len(sizes) > 1
    assert sum(sizes) == table.size == path.stat().st_size
    lines = rejected(path)
    assert [int(line.split(",")[3]) for line in lines[1:]] == [n + 2 for n in range(0, count, 100_000)]


def test_rejected_rows_have_the_columns_of_their_file_and_line_and_reason(tmp_path: Path) -> None:
    """Added columns have names of their own. What a spreadsheet would run is text."""
    text = (
        'price,symbol,time,line,x,x\n1,A,1704067200,,,\n"-1", A,1704067200\n1,=A,1704067200\n1,A,1704067200,7,8,9,,5,\n'
    )
    assert rejected(written(tmp_path, text)) == [
        "price,symbol,time,line_,x,x_,line,reason",
        "-1,A,1704067200,,,,3,the value is negative",
        "1,'=A,1704067200,,,,4,\"no asset can be made of it: the symbol begins with = + - @, a tab or a line "
        'end: a spreadsheet would run it as a formula"',
        '1,A,1704067200,7,8,"9,,5",5,the row has more fields than columns; a field with the delimiter in it '
        "needs quotes",
    ]
    assert len(list(tmp_path.iterdir())) == 2


def replaced(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


def grown(path: Path) -> None:
    with path.open("a") as file:
        file.write("1704067300,ETH,2\n")


@pytest.mark.parametrize("name", ["prices.csv", "prices.parquet"])
@pytest.mark.parametrize("change", [replaced, grown])
def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, name: str, change: Callable[[Path], None]
) -> None:
    path = tmp_path / name
    rows = pl.DataFrame({"symbol": "AAA", "time": 1_704_067_200, "price": "1"})
    rows.write_csv(path) if path.suffix == ".csv" else rows.write_parquet(path)
    blocks = open_table(path).blocks()
    assert next(blocks)[0].height == 1
    change(path)
    with pytest.raises(ImportRefused, match="changed while it was read"):
        list(blocks)
    if change is replaced:
        assert len(rows_of(loaded(path))) == 1


@pytest.mark.parametrize("content", [f"{HEADER}\n\n", "[]", "{}"])
def test_a_file_without_rows_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(ImportRefused, match=r"no rows"):
        loaded(written(tmp_path, content))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return open_table(written(tmp_path, ROW))


def test_an_import_is_refused_when_rejected_rows_cannot_be_written(tmp_path: Path, table: Table) -> None:
    """Nor when their file cannot have its name. One that is abandoned leaves nothing behind."""
    with closing(RejectedFile(table)) as file:
        file.add(BAD)
    assert list(tmp_path.iterdir()) == [table.path]
    Path(f"{table.path}.rejected.csv").mkdir()
    with closing(RejectedFile(table)) as file:
        file.add(BAD)
        with pytest.raises(ImportRefused, match="cannot be written to"):
            file.keep()
    assert sorted(tmp_path.iterdir()) == [table.path, file.path]
    rmtree(tmp_path)
    with closing(RejectedFile(table)) as file, pytest.raises(ImportRefused, match="cannot be written to"):
        file.add(BAD)


def test_imports_of_a_file_at_the_same_time_do_not_mix_their_rejected_rows(tmp_path: Path, table: Table) -> None:
    with closing(RejectedFile(table)) as last:
        last.add(BAD)
        with closing(RejectedFile(table)) as first:
            first.add(BAD)
            first.keep()
        last.add(BAD)
        assert first.path.read_text().count("1,X,-1") == 1
        last.keep()
    assert first.path.read_text().count("1,X,-1") == 2
    assert sorted(tmp_path.iterdir()) == [table.path, first.path]
