"""Tables in layouts that people have: without a header, with lines around it, in objects, workbooks and archives."""

import io
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import openpyxl
import pandas as pd
import pytest

from analytics_service.errors import ImportRefused
from analytics_service.imports.layout import ColumnChoice
from analytics_service.imports.opening import open_table, within_memory
from analytics_service.imports.tables import TableRules
from analytics_service.imports.times import TimeRules
from analytics_service.market.instants import HOUR
from analytics_service.store.datasets import histories
from tests.unit.history_files import HEADER, IN_UTC, loaded, rows_of, written

# 2024-01-02T00:00:00Z, and the last second of that day.
MIDNIGHT, LAST = 1_704_153_600, 1_704_239_999
OF_BTC = ColumnChoice(symbol="BTC")
AS_FOUND = TableRules()


def values(
    path: Path, rules: TableRules = AS_FOUND, choice: ColumnChoice = OF_BTC, **others: Any
) -> list[tuple[int, str]]:
    """Second and value of each row, for dates and times in UTC."""
    rows = rows_of(loaded(path, tables=rules, choice=choice, **{"times": IN_UTC, **others}))
    return [(second, f"{value.normalize():f}") for _, second, value in rows]


def zipped(contents: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def workbook(folder: Path, sheets: dict[str, Sequence[Sequence[Any]]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(folder / "book.xlsx")
    return folder / "book.xlsx"


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("# Made by a program\n# on a day\nDate,Close\n2024-01-02,5\n# the end\n", AS_FOUND),
        ("https://example.org\nDate;Close\n2024-01-02;5\n", AS_FOUND),
        ("Prices of Bitcoin\n\n\nDate,Close\n2024-01-02,5\n", AS_FOUND),
        ("#Date,Close\n2024-01-02,5\n", AS_FOUND),
        ("Made by, a program\nDate,Close\n2024-01-02,5\n", TableRules(skip=1)),
        ("2024-01-02,5\n", TableRules(["Date", "Close"])),
        ("# nothing\n2024-01-02\t4\t5\t\n", TableRules(["Date", "Open", "Close"])),
        ("a,b\nc,d\n2024-01-02,5\n", TableRules(["Date", "Close"], skip=2)),
    ],
)
def test_the_columns_are_found_whatever_stands_before_them(tmp_path: Path, text: str, rules: TableRules) -> None:
    assert values(written(tmp_path, text), rules) == [(LAST, "5")]


def test_numbers_of_lines_are_those_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "# one\ntitle\nDate,Close\n2024-01-02,5\n# gap\nSource: example\n")
    with pytest.raises(ImportRefused, match=r"line 6: 'Source: example,': the time cannot be read"):
        values(path)


@pytest.mark.parametrize(
    ("content", "rules", "message"),
    [
        ("2024-01-02,5\n", AS_FOUND, r"first line .* seems to be data, such as '2024-01-02'.*--columns"),
        ("1,2,3\n", TableRules(["time", "close"]), r"Line 1 of .* has 3 values, and --columns has 2 names"),
        ("1,2\n", TableRules(["time", "close", "volume"]), "has 2 values, and --columns has 3 names"),
        ("a,b\n", TableRules(rows="prices"), "is text, where --rows has no meaning"),
        ('[{"a": 1}]', TableRules(skip=1), "is JSON, where --skip has no meaning"),
        ('[{"a": 1}]', TableRules(["a"]), "--columns has no meaning"),
        ('{"a": [[1, 2]]}', TableRules(rows="b"), r"has no rows at 'b'\. It has a\."),
        ("[[1, 2, 3]]", TableRules(["time", "close"]), "Row 1 of .* has 3 values, and --columns has 2 names"),
        ("[[1, 2], 3]", TableRules(["time", "close"]), "neither objects nor arrays"),
        (
            "Zeit,Währung\n".encode("latin-1"),
            TableRules(encoding="ascii"),
            "is not ASCII. Say what it is, such as --encoding latin-1",
        ),
    ],
)
def test_a_table_that_is_not_as_it_is_said_to_be_is_refused(
    tmp_path: Path, content: str | bytes, rules: TableRules, message: str
) -> None:
    with pytest.raises(ImportRefused, match=message):
        values(written(tmp_path, content), rules)


def test_text_in_another_encoding_is_read_as_the_caller_says(tmp_path: Path) -> None:
    path = written(tmp_path, "Tag;Währung;Kurs\n02.01.2024;€;5\n".encode("cp1252"))
    with pytest.raises(ImportRefused, match=r"is not UTF-8.*--encoding latin-1"):
        open_table(path)
    times, choice = TimeRules("UTC", order="dmy"), ColumnChoice("Tag", "Kurs", symbol="BTC")
    assert values(path, TableRules(encoding="cp1252"), choice, times=times) == [(LAST, "5")]
    assert open_table(path, TableRules(encoding="cp1252")).columns[1] == "Währung"
    assert values(written(tmp_path, "\ufeffDate,Close\n2024-01-02,5\n"), TableRules(encoding="utf-8")) == [(LAST, "5")]


ROWS = [[MIDNIGHT * 1000, 5.5]]
RECORDS = [{"t": MIDNIGHT, "price": "5.5"}]


@pytest.mark.parametrize(
    ("document", "rules"),
    [
        (ROWS, AS_FOUND),
        ([["time", "price"], *ROWS], AS_FOUND),
        ([[MIDNIGHT, 4, 5.5]], TableRules(["time", "volume", "price"])),
        ({"prices": ROWS, "market_caps": []}, AS_FOUND),
        ({"prices": ROWS, "market_caps": ROWS}, TableRules(rows="prices")),
        ({"data": {"tokenDayDatas": RECORDS}}, AS_FOUND),
        ({"t": MIDNIGHT, "price": 5.5, "tags": ["a"]}, AS_FOUND),
        ({"s": "ok", "t": [MIDNIGHT], "price": [5.5]}, AS_FOUND),
        ({"a": {"t": [MIDNIGHT], "price": [5.5]}, "b": RECORDS}, TableRules(rows="a")),
        ({"data": RECORDS, "timestamp": 1, "names": ["a", "b"]}, AS_FOUND),
        ({"data": {"result": [{"values": ROWS}]}}, TableRules(rows="data.result.0.values")),
        ([{"t": MIDNIGHT, "of": {"usd": {"price": 5.5}}}], TableRules(time="t")),
    ],
)
def test_rows_of_json_are_found_in_arrays_and_objects(tmp_path: Path, document: Any, rules: TableRules) -> None:
    path = written(tmp_path, json.dumps(document))
    choice = ColumnChoice("t", "of.usd.price", symbol="BTC") if rules.time else OF_BTC
    assert values(path, rules, choice) == [(MIDNIGHT, "5.5")]
    assert open_table(path, rules).row_label == ("line" if "tags" in document else "row")


def test_a_row_with_more_values_than_columns_is_bad(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps([*ROWS, [MIDNIGHT * 1000, 1, 2]]))
    with pytest.raises(ImportRefused, match=r"row 2: '1704153600000,1,2': the row has more fields than columns"):
        values(path)


def test_a_zip_of_one_file_is_that_file(tmp_path: Path) -> None:
    path = written(tmp_path, zipped({"__MACOSX/a.csv": "x", "a/a.csv": "Date,Close\n2024-01-02,5\n"}), "a.zip")
    assert values(path) == [(LAST, "5")]
    assert values(written(tmp_path, zipped({"a.json": json.dumps(ROWS)}), "b.zip")) == [(MIDNIGHT, "5.5")]


def test_a_sheet_of_a_workbook_is_a_table(tmp_path: Path) -> None:
    """Dates, instants and numbers are as they are typed; a fraction that is shown as a percent has the sign."""
    rows = [["Prices"], [], ["Date", "Note", "Close"], [date(2024, 1, 2), None, 0.1], [date(2024, 1, 3), "x", 5]]
    path = workbook(tmp_path, {"Prices": rows})
    assert values(path) == [(LAST, "0.1"), (LAST + 86_400, "5")]
    assert open_table(path).row_label == "row"
    for format in ("yyyy-mm-dd", "DD.MM.YYYY"):
        frame = pd.DataFrame({"Close": [5]}, index=[date(2024, 1, 2)])
        with pd.ExcelWriter(path, date_format=format) as writer:
            frame.to_excel(writer)
        assert values(path) == [(LAST, "5")]
    path = workbook(tmp_path, {"A": [], "B": [[datetime.fromisoformat("2024-01-02T00:00:01"), 7]]})
    with pytest.raises(ImportRefused, match=r"has the sheets A, B\. Name one with --rows"):
        values(path)
    with pytest.raises(ImportRefused, match=r"has no sheet 'C'; it has A, B"):
        values(path, TableRules(rows="C"))
    with pytest.raises(ImportRefused, match="is empty"):
        values(path, TableRules(rows="A"))
    assert values(path, TableRules(["Date", "Close"], rows="B")) == [(MIDNIGHT + 1, "7")]
    book = openpyxl.Workbook()
    for row in (["time", "apr"], [MIDNIGHT, 0.053]):
        book.worksheets[0].append(row)
    book.worksheets[0]["B2"].number_format = "0.0%"
    book.save(path)
    assert values(path, history=histories.LEND_RATES) == [(MIDNIGHT, "0.053")]


def test_a_workbook_that_is_damaged_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, zipped({"xl/workbook.xml": "<no"}), "a.xlsx")
    with pytest.raises(ImportRefused, match="it is no workbook"):
        values(path)


@pytest.mark.slow
def test_a_workbook_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive, archive.open("xl/workbook.xml", "w", force_zip64=True) as file:
        for _ in range(1025):
            file.write(bytes(2**20))
    with pytest.raises(ImportRefused, match="has more than 1024 MiB unpacked"):
        values(written(tmp_path, buffer.getvalue(), "b.xlsx"))


@pytest.mark.slow
def test_a_workbook_that_needs_too_much_memory_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """A text of 900 MiB in a cell, packed to one."""
    path, sheet = workbook(tmp_path, {"A": [["a", "b"]]}), "xl/worksheets/sheet1.xml"
    with ZipFile(path) as source, ZipFile(bomb := tmp_path / "bomb.xlsx", "w", ZIP_DEFLATED) as archive:
        for name in set(source.namelist()) - {sheet}:
            archive.writestr(name, source.read(name))
        before, value, after = source.read(sheet).partition(b"<t>a")
        with archive.open(sheet, "w", force_zip64=True) as file:
            file.write(before + value)
            for _ in range(900):
                file.write(b"x" * 2**20)
            file.write(after)
    assert within_memory([path]) == [path]
    with pytest.raises(ImportRefused, match=r"bomb\.xlsx cannot be read within 768 MiB of memory"):
        within_memory([bomb])


@pytest.mark.parametrize(
    ("header", "row", "time"),
    [
        ("Date,Time,Close", "2024-01-02,09:30,5", None),
        ("Date,Time,Close", "2024-01-02,09:30,5", "Date,Time"),
        ("<DATE>\t<TIME>\t<CLOSE>", "2024.01.02\t09:30:00\t5", None),
        ("<TICKER>,<DATE>,<TIME>,<CLOSE>", "X,20240102,093000,5", None),
        ("Day,Clock,Close", "2024-01-02,9:30 AM,5", "Day,Clock"),
        ("Date,Time,Close", "2024-01-02,1704187800,5", "Time"),
        ('"Date,Time",Close', '"2024-01-02, 09:30",5', "Date,Time"),
        ("Date,Time,Close", "2024-01-02 09:30,09:30,5", "Date"),
    ],
)
def test_a_date_and_a_time_beside_it_are_one_time(tmp_path: Path, header: str, row: str, time: str | None) -> None:
    choice = ColumnChoice(time, symbol="BTC")
    assert values(written(tmp_path, f"{header}\n{row}\n"), TableRules(time=time), choice) == [
        (MIDNIGHT + 9 * 3600 + 1800, "5")
    ]


@pytest.mark.parametrize("row", ["2024-01-02 09:30,09:30,5", "2024-01-02,1704187800,5"])
def test_a_date_beside_a_time_that_is_no_clock_of_its_day_is_asked_about(tmp_path: Path, row: str) -> None:
    path = written(tmp_path, f"Date,Time,Close\n{row}\n")
    with pytest.raises(ImportRefused, match="several columns that could be the time: Date, Time"):
        values(path)
    with pytest.raises(ImportRefused, match="has no column 'Clock'"):
        values(path, TableRules(time="Date,Clock"))


def test_the_symbol_is_in_the_name_of_the_file(tmp_path: Path) -> None:
    paths = [written(tmp_path, f"t,price\n{MIDNIGHT},1\n", f"{name}-1d-2024.csv") for name in ("BTC-USD", "ETH")]
    rows = rows_of(loaded(*paths, choice=ColumnChoice(symbol_from="SYMBOL-1d-*.csv")))
    assert [asset for asset, _, _ in rows] == ["native;BTC", "native;ETH"]
    with pytest.raises(ImportRefused, match=r"BTC-USD-1d-2024\.csv may say BTC or BTC-USD"):
        loaded(*paths, choice=ColumnChoice(symbol_from="SYMBOL-*.csv"))
    with pytest.raises(ImportRefused, match=r"ETH-1d-2024\.csv does not fit by --symbol-from SYMBOL-USD-\*"):
        loaded(*paths, choice=ColumnChoice(symbol_from="SYMBOL-USD-*"))
    with pytest.raises(ImportRefused, match="--symbol-from and --asset exclude each other"):
        loaded(*paths, choice=ColumnChoice(symbol_from="SYMBOL-1d-*.csv", asset="t"))


@pytest.mark.parametrize("nothing", ["", "null", "NaN", "N/A", "#N/A", ".", " "])
def test_rows_without_a_value_are_left_out_and_counted(tmp_path: Path, nothing: str) -> None:
    content = loaded(
        written(tmp_path, f"{HEADER}{MIDNIGHT},BTC,{nothing}\n{MIDNIGHT + 1},BTC,5\n"), history=histories.PRICES
    )
    assert rows_of(content) == [("native;BTC", MIDNIGHT + 1, Decimal(5))]
    summary = content.summary(0)
    assert (summary.read, summary.written, summary.rejected, summary.empty) == (2, 1, 0, 1)


@pytest.mark.parametrize(
    ("header", "history"),
    [
        ("observation_date,close_usd,token", histories.PRICES),
        ("TIME_PERIOD,OBS_VALUE,symbol", histories.PRICES),
        ("Date,Close/Last,symbol", histories.PRICES),
        ("window_start,close,ticker,window_end", histories.PRICES),
        ("block_time,supply_apr,token", histories.LEND_RATES),
        ("block_time,borrowApr,token", histories.BORROW_RATES),
        ("date,tvl_usd", histories.TVL),
    ],
)
def test_usual_names_are_known(tmp_path: Path, header: str, history: histories.History) -> None:
    cells = ["2024-01-02T01:00:00Z", "5", "BTC", "2024-01-02T01:00:00Z"][: header.count(",") + 1]
    path = written(tmp_path, f"{header}\n{','.join(cells)}\n")
    assert values(path, choice=ColumnChoice(), history=history, fraction=True) == [(MIDNIGHT + HOUR, "5")]


def test_the_index_of_a_data_frame_that_has_no_name_is_the_time(tmp_path: Path) -> None:
    index = pd.DatetimeIndex([datetime.fromtimestamp(MIDNIGHT + HOUR, UTC)])
    pd.DataFrame({"close": [5.0]}, index=index).to_parquet(tmp_path / "a.parquet")
    assert values(tmp_path / "a.parquet") == [(MIDNIGHT + HOUR, "5")]
