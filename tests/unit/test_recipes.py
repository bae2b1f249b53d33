"""The page of recipes: each turns a layout that people have into the rows that are meant.

Its blocks of code are what runs, on small files made here. Files of `ANALYTICS_TEST_DATA` are refused without a recipe.
"""

import io
import json
import os
import re
import shlex
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from click.testing import CliRunner, Result

from analytics_service import importing
from analytics_service.cli import imports
from analytics_service.cli.main import cli
from analytics_service.config.settings import Settings
from analytics_service.importing.history import Loaded, load_history

PAGE = Path(importing.__file__).with_name("RECIPES.md")
SHARED = Path(os.environ.get("ANALYTICS_TEST_DATA", "/nowhere")) / "imports"
# Midnights of UTC, and their last seconds.
JAN1, JAN2, JAN3, JAN4 = (1704067200 + day * 86400 for day in range(4))
DAY1, DAY2, DAY3 = JAN2 - 1, JAN3 - 1, JAN4 - 1
# The second of July.
JULY = JAN1 + 183 * 86400
HOUR = 3600
# By symbol or id, values by unix second.
Values = Mapping[str, Mapping[int, str]]
Files = Mapping[str, str | bytes]


@dataclass(frozen=True)
class Recipe:
    """A command of the page, and the code that makes the file which it imports."""

    code: str
    command: str

    @property
    def name(self) -> str:
        """The file that is imported."""
        return shlex.split(self.command)[3]

    def run(self, folder: Path, settings: Settings | None = None) -> Result:
        """Run it in a folder. Without a store it is a dry run."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            exec(self.code, {"duckdb": duckdb, "pl": pl})  # noqa: S102
            program, *words = shlex.split(self.command)
            assert program == "analytics-service"
            # As a shell does.
            words = [f"{name}" for word in words for name in (sorted(Path().glob(word)) if "*" in word else [word])]
            if settings:
                return CliRunner().invoke(cli, words, env=settings.to_environment({}))
            return CliRunner().invoke(cli, [*words, "--dry-run", "--data-dir", "empty"])


def recipes() -> Iterator[Recipe]:
    code = ""
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        if language == "python":
            code = block
        else:
            yield from (Recipe(code, line) for line in block.splitlines())
            code = ""


BY_NAME = {recipe.name: recipe for recipe in recipes()}


def workbook(cells: Sequence[Sequence[str | float]]) -> bytes:
    """A workbook. Numbers of its first column are dates, in days since 1899-12-30."""
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    office = "http://schemas.openxmlformats.org"
    main = f'xmlns="{office}/spreadsheetml/2006/main"'
    related = f"{office}/officeDocument/2006/relationships"

    def cell(value: str | float, column: int) -> str:
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        return f'<c s="{int(column == 0)}"><v>{value}</v></c>'

    rows = "".join(f"<row>{''.join(cell(value, n) for n, value in enumerate(row))}</row>" for row in cells)
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{office}/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{kind}.styles+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{office}/package/2006/relationships">'
        f'<Relationship Id="r1" Type="{related}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {main} xmlns:r="{related}"><sheets><sheet name="Prices" sheetId="1" r:id="r1"/>'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{office}/package/2006/relationships">'
        f'<Relationship Id="r1" Type="{related}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="r2" Type="{related}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet {main}><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
        "</styleSheet>",
        "xl/worksheets/sheet1.xml": f"<worksheet {main}><sheetData>{rows}</sheetData></worksheet>",
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return file.getvalue()


def candle(second: int, *values: str) -> dict[int, str]:
    """Of a day: the open at its first second, the high at a third, the low at two thirds, the close at the last."""
    return dict(zip((second, second + 28800, second + 57600, second + 86399), values, strict=True))


KLINES = (
    f"{JAN1}000,42283.58,44184.10,42180.77,44179.55,27174.29,{JAN2 - 1}999,1169995682.3,1024542,13946.1,6005.4,0\n"
    f"{JAN2}000,44179.55,45879.63,44148.34,44946.91,65146.40,{JAN3 - 1}999,2944331594.4,2236842,33210.9,1501.5,0\n"
)
CHART = {"timestamp": [JAN2, JAN3], "indicators": {"quote": [{"open": [1.5, 2.5], "close": [44957.97, None]}]}}
COINS = {
    "coingecko:llama-b": {"symbol": "LLB", "confidence": 0.99, "prices": [{"timestamp": JAN1 + 11, "price": 42208.2}]},
    "ethereum:0xa0": {"symbol": "LLC", "decimals": 6, "prices": [{"timestamp": JAN1 + 12, "price": 1.0001}]},
}
RATES = [
    {"timestamp": "2024-01-01T23:01:30.123Z", "tvlUsd": 9, "apy": 3.12, "apyBase": 3.12, "apyReward": None},
    {"timestamp": "2024-01-02T23:01:30.123Z", "tvlUsd": 9, "apy": 0.298, "apyBase": 0.298, "apyReward": None},
]
TOKEN = {"token": {"symbol": "GRW"}}
DAYS = [
    {"date": JAN1, "priceUSD": "2352.123456789012345678", **TOKEN},
    {"date": JAN2, "priceUSD": "2210.5", **TOKEN},
]
SPLIT = {"columns": ["open", "close"], "index": [JAN2 * 1000, JAN3 * 1000], "data": [[1.5, 2.25], [2.25, None]]}
CHAIN = "0x2222222222222222222222222222222222222222"

# Files of each layout, by the file that their recipe's command imports, and what the store then has.
CASES: Mapping[str, tuple[Files, Values]] = {
    "fred.csv": ({"fred.csv": "observation_date,DEXUSEU\n2024-01-01,.\n2024-01-02,1.09\n"}, {"EUR": {DAY2: "1.09"}}),
    "pandas.csv": ({"pandas.csv": ",close\n2024-01-02,1.5\n"}, {"PDX": {DAY2: "1.5"}}),
    "yahoo.csv": (
        {"yahoo.csv": "Date,Open,High,Low,Close,Adj Close,Volume\n2024-01-02,187.1,188.4,183.8,185.6,184.7,82488700\n"
                      "2024-01-03,null,null,null,null,null,null\n"},
        {"YAH": {DAY2: "185.6"}},
    ),
    "flipside.csv": (
        {"flipside.csv": "BLOCK_TIMESTAMP,SYMBOL,PRICE,__row_index\n2024-01-02T00:00:00.000Z,FLP,1.25,0\n"},
        {"FLP": {JAN2: "1.25"}},
    ),
    "daily/*.csv": (
        {"daily/ONE-USD.csv": "Date,Close\n2024-01-02,44957\n", "daily/TWO-USD.csv": "Date,Close\n2024-01-02,2357\n"},
        {"ONE": {DAY2: "44957"}, "TWO": {DAY2: "2357"}},
    ),
    "klines.csv": ({"BNC-1d-2024.csv": KLINES}, {"BNC": {DAY1: "44179.55", DAY2: "44946.91"}}),
    "api-klines.csv": (
        {"klines.json": f'[[{JAN1}000,"1","2","0.5","1.50","9",{JAN2 - 1}999,"9",3,"0"]]'}, {"BNA": {DAY1: "1.5"}}
    ),
    "candles.csv": (
        {"CND-1d-2024-01.csv": KLINES},
        {"CND": {**candle(JAN1, "42283.58", "44184.1", "42180.77", "44179.55"),
                 **candle(JAN2, "44179.55", "45879.63", "44148.34", "44946.91")}},
    ),
    "trades.csv": (
        {"KRKUSD.csv": f"{JAN1},122.00000,0.1\n{JAN1},122.50000,0.2\n{JAN1 + 5},123.61,1\n"},
        {"KRK": {JAN1: "122.5", JAN1 + 5: "123.61"}},
    ),
    "yahoo-closes.csv": ({"yahoo.json": json.dumps({"chart": {"result": [CHART]}})}, {"YHO": {DAY2: "44957.97"}}),
    "yfinance-closes.csv": (
        {"yfinance.csv": "Price,Adj Close,Close,High\nTicker,YFI,YFI,YFI\nDate,,,\n2024-01-02,184.73,185.64,188.44\n"},
        {"YFI": {DAY2: "185.64"}},
    ),
    "coingecko.csv": (
        {"coingecko.json": json.dumps({"prices": [[JAN1 * 1000, 42208.2], [JAN2 * 1000 + 999, 1.25e-7]],
                                       "market_caps": [[JAN1 * 1000, 826824637000]]})},
        {"CGK": {JAN1: "42208.2", JAN2: "0.000000125"}},
    ),
    "llama.csv": ({"llama.json": json.dumps({"coins": COINS})},
                  {"LLB": {JAN1 + 11: "42208.2"}, "LLC": {JAN1 + 12: "1.0001"}}),
    "pool.csv": ({"pool.json": json.dumps({"status": "success", "data": RATES})},
                 {"LLA": {JAN1 + 82890: "0.0312", JAN2 + 82890: "0.00298"}}),
    "graph.csv": ({"graph.json": json.dumps({"data": {"tokenDayDatas": DAYS}})},
                  {"GRW": {DAY1: "2352.123456789012345678", DAY2: "2210.5"}}),
    "dune-prices.csv": (
        {"dune.csv": f"block_time,contract_address,symbol,price\n2024-01-02 00:00:00.000 UTC,{CHAIN},DUN,0.0003\n"},
        {f"token;{CHAIN}": {JAN2: "0.0003"}},
    ),
    # 1.25 dollars and 125 yen a euro.
    "euro.csv": (
        {"eurofxref-hist.csv": "Date,USD,JPY,GBP,CYP,\n2024-01-03,1.25,125,0.8,N/A,\n"},
        {"EUR": {DAY3 - HOUR: "1.25"}, "JPY": {DAY3 - HOUR: "0.01"}, "GBP": {DAY3 - HOUR: "1.5625"}},
    ),
    # 45293 days after 1899-12-30 is 2024-01-02.
    "workbook.csv": ({"prices.xlsx": workbook([["Date", "Close"], [45293, 1.5], [45294, 2.5]])},
                     {"XLS": {DAY2: "1.5", DAY3: "2.5"}}),
    "closes.csv": (
        {"kurse.csv": "sep=;\nDatum;Schlusskurs\n02.01.2024;1.234,56\n03.01.2024;1.240,00\n"},
        {"DAX": {DAY2 - HOUR: "1234.56", DAY3 - HOUR: "1240"}},
    ),
    "de.csv": ({"de.csv": "Datum;asset;Kurs\n02.01.2024;KRS;1234,56\n"}, {"KRS": {DAY2: "1234.56"}}),
    "split.csv": ({"split.json": json.dumps(SPLIT)}, {"SPL": {JAN2: "2.25"}}),
    "lake.csv": (
        {"lake/symbol=LKA/a.csv": f"time,close\n{JAN1},3\n", "lake/symbol=LKB/a.csv": f"time,close\n{JAN1},4\n"},
        {"LKA": {JAN1: "3"}, "LKB": {JAN1: "4"}},
    ),
    "flux-values.csv": (
        {"flux.csv": "#group,false,false,true,false,true\n#datatype,string,long,dateTime:RFC3339,double,string\n"
                     "#default,_result,,,,\n,result,table,_time,_value,symbol\n,,0,2024-01-01T01:00:00Z,61.25,FLX\n"},
        {"FLX": {JAN1 + HOUR: "61.25"}},
    ),
    "rows.csv": (
        {"footer.csv": "Date,Close\n2024-01-02,44957.97\n2024-01-03,42848.18\n\nSource: example\nExported now\n"},
        {"FOO": {DAY2: "44957.97", DAY3: "42848.18"}},
    ),
    "clock.csv": (
        {"metatrader.csv": "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\n"
                           "2024.01.02\t00:00:00\t42261.1\t42300.0\t42200.0\t42280.5\n"},
        {"MTR": {JAN2 + HOUR - 1: "42280.5"}},
    ),
    # 2018-08-31T23:59:59Z.
    "last-days.csv": ({"months.csv": "Date,Price\n2018-08,1201.859\n"}, {"MON": {1535759999: "1201.859"}}),
    "offsets.csv": (
        {"zones.csv": "date,price\n2024-01-02 00:00:00 EST,44167.3\n2024-07-02 00:00:00 EDT,44957.9\n"},
        {"ZON": {JAN2 + 5 * HOUR: "44167.3", JULY + 4 * HOUR: "44957.9"}},
    ),
    "whole.csv": ({"scientific.csv": "date,price\n1.7040672e+12,1.5\n"}, {"SCI": {JAN1: "1.5"}}),
}  # fmt: skip


def write(folder: Path, files: Files) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def read(recipe: Recipe, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Result, list[Loaded]]:
    """The outcome of a command for a store without data, and what it has read."""
    loaded: list[Loaded] = []

    def load(*arguments: Any) -> Loaded:
        loaded.append(load_history(*arguments))
        return loaded[-1]

    monkeypatch.setattr(imports, "load_history", load)
    return recipe.run(folder), loaded


@pytest.mark.parametrize("name", [name for name in BY_NAME if " events " not in BY_NAME[name].command])
def test_a_recipe_makes_of_a_layout_the_rows_that_are_meant(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, expected = CASES[name]
    write(tmp_path, files)
    done, loaded = read(BY_NAME[name], tmp_path, monkeypatch)
    assert done.exit_code == 0, done.output
    found: dict[str, dict[int, Decimal]] = {}
    for asset_id, second, value in (
        loaded[0].rows.select(pl.col("asset").cast(pl.String), "observed_at", "value").rows()
    ):
        symbol = asset_id.removeprefix("native;")
        found.setdefault(symbol, {})[second] = value
    values = {asset: {at: Decimal(value) for at, value in values.items()} for asset, values in expected.items()}
    assert found == values


NEW = "--asset ONE --new-assets"


@pytest.mark.skipif(not SHARED.exists(), reason="ANALYTICS_TEST_DATA is not set")
@pytest.mark.parametrize(
    ("file", "told", "words"),
    [
        ("w03_kline_open_close.csv", "--stamp", f"--time close_time --value close --time-unit ms {NEW}"),
        ("w04_currency_column.csv", "EUR", "--time timestamp --asset-column symbol --value price --new-assets"),
        ("w05_two_coin_ids.csv", "btc", "--time date --asset-column symbol --value price --new-assets"),
        ("w07_date_and_time.csv", "recipe", f"--time Date --value Close {NEW}"),
        ("w08_file_per_asset/*", "ONE", f"--time Date --value Close {NEW}"),
        ("w10_no_header.csv", "recipe", NEW),
        ("b01_empty_array.json", "b01_empty_array.json", NEW),
        ("b01_empty_object.json", "b01_empty_object.json", NEW),
        ("b02_graph.json", "recipe", NEW),
        ("b03_all_rejected.csv", "b03_all_rejected.csv", f"--time date --value price --skip-invalid {NEW}"),
        ("r04_two_digit_years.csv", "recipe|--time-format", f"--time date --value price {NEW}"),
        ("r08_zone_id.csv", "recipe|--time-format", f"--time date --value price {NEW}"),
        ("r10_fall_back.csv", "2024-11-03 01:00:00.*twice|twice.*2024-11-03 01:00:00",
         f"--time date --value price --zone America/New_York {NEW}"),
        ("r13_coingecko.json", "recipe", NEW),
        ("r19_footer.csv", "recipe", f"--time Date --value Close {NEW}"),
        ("t03_pairs.csv", "EUR", "--asset-column pair --value price --new-assets"),
        ("t06_contradicting_dates.csv", "line 3.*06/13/2018",
         f"--time date --value price --time-format %d/%m/%Y {NEW}"),
    ],
)  # fmt: skip
def test_a_file_of_others_is_refused(
    file: str, told: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in SHARED.glob(file):
        (tmp_path / path.relative_to(SHARED)).parent.mkdir(exist_ok=True)
        shutil.copy(path, tmp_path / path.relative_to(SHARED))
    done, _ = read(Recipe("", f"analytics-service import price {file} {words}"), tmp_path, monkeypatch)
    assert done.exit_code == 2, done.output
    assert re.search(told, done.output, re.IGNORECASE), done.output
