"""The page of recipes: each turns a layout that people have into the rows that are meant.

Its blocks of code are what runs, on small files made here, and on those of `ANALYTICS_TEST_DATA` where it is set.
"""

import io
import json
import os
import re
import shlex
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pytest
from click.testing import CliRunner, Result

from analytics_service import importing
from analytics_service.cli.main import cli
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from tests.integration.conftest import Run
from tests.integration.routes import client_of

PAGE = Path(importing.__file__).with_name("RECIPES.md")
SHARED = Path(os.environ.get("ANALYTICS_TEST_DATA", "/nowhere")) / "imports"
# Midnights of UTC, and their last seconds.
JAN1, JAN2, JAN3, JAN4 = (1704067200 + day * 86400 for day in range(4))
DAY1, DAY2, DAY3 = JAN2 - 1, JAN3 - 1, JAN4 - 1
# The first of March, and the second of July.
MARCH, JULY = JAN1 + 60 * 86400, JAN1 + 183 * 86400
HOUR, ALICE = 3600, "0x" + "3" * 40
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

    def run(self, folder: Path, settings: Settings) -> Result:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            exec(self.code, {"duckdb": duckdb, "pl": pl})  # noqa: S102
            program, *words = shlex.split(self.command)
            assert program == "analytics-service"
            # As a shell does.
            words = [f"{name}" for word in words for name in (sorted(Path().glob(word)) if "*" in word else [word])]
            return CliRunner().invoke(cli, words, env=settings.to_environment({}))


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
LOANS = f"""\
transaction_type,symbol,borrower,amount,amount_usd,block_time,tx_hash
borrow,USDC,{ALICE},1500.5,1500.6,2024-01-02 10:00:11.000 UTC,0xbb
repay,USDC,{ALICE},-500.5,-500.6,2024-01-03 10:00:11.000 UTC,0xcc
"""
ASSETS = "symbol,address,decimals\nUSDC,0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48,6\n"
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


def expect_rows(run: Run, history: str, expected: Values) -> None:
    """Check that assets have these values at these seconds, and no others."""
    found: dict[str, dict[int, Decimal]] = {asset: {} for asset in expected}
    columns = "asset_id, symbol, toUnixTimestamp(observed_at), value_exact"
    for asset_id, symbol, second, value in run(f"SELECT {columns} FROM {history.replace('-', '_')}"):
        asset = found.get(asset_id, found.get(symbol))
        if asset is not None:
            asset[second] = value
    values = {asset: {at: Decimal(value) for at, value in values.items()} for asset, values in expected.items()}
    assert found == values


@pytest.mark.parametrize("name", [name for name in BY_NAME if " events " not in BY_NAME[name].command])
@pytest.mark.usefixtures("store")
def test_a_recipe_makes_of_a_layout_the_rows_that_are_meant(
    settings: Settings, tmp_path: Path, run: Run, name: str
) -> None:
    files, expected = CASES[name]
    write(tmp_path, files)
    done = BY_NAME[name].run(tmp_path, settings)
    assert done.exit_code == 0, done.output
    expect_rows(run, shlex.split(BY_NAME[name].command)[2], expected)


def events_of(settings: Settings, store: Store, address: str) -> list[tuple[object, ...]]:
    path = f"/api/v1/users/{address}/tx-history"
    answer = client_of(settings, store).simulate_get(path, query_string="sort_order=asc")
    assert answer.status_code == 200, answer.text
    return [(event["action"], event["amount"], event["historic_value"]) for event in answer.json["data"]]


PRICES = "analytics-service import price prices.csv --asset-column symbol --value price --assets assets.csv"


def test_a_recipe_makes_events(store: Store, settings: Settings, tmp_path: Path) -> None:
    prices = "time,symbol,price\n2024-01-01T00:00:00Z,USDC,1\n"
    write(tmp_path, {"dune-loans.csv": LOANS, "assets.csv": ASSETS, "prices.csv": prices})
    for recipe in (Recipe("", PRICES), BY_NAME["loans.csv"]):
        done = recipe.run(tmp_path, settings)
        assert done.exit_code == 0, done.output
    expected = [("borrow", "1500500000", "1500.6"), ("return", "500500000", "500.6")]
    assert events_of(settings, store, ALICE) == expected


@dataclass(frozen=True)
class Shared:
    """A file of others, by a recipe or without, imported by words or as the recipe says: with what the store then
    has, or what a refusal says."""

    file: str
    expected: Values | str
    words: str = ""
    recipe: str = ""
    edits: Mapping[str, str] = field(default_factory=dict)

    def run(self, folder: Path, settings: Settings) -> Result:
        """Import a copy of the file. Its name stands for what the recipe reads."""
        copy = shutil.copytree if (SHARED / self.file).is_dir() else shutil.copy
        copy(SHARED / self.file, folder / self.file)
        code = BY_NAME[self.recipe].code if self.recipe else ""
        for old, new in self.edits.items():
            assert old in code
            code = code.replace(old, new)
        code = re.sub(r"'[\w.-]+\.(csv|json)'", repr(self.file), code, count=1)
        command = f"analytics-service import {self.words}" if self.words else BY_NAME[self.recipe].command
        return Recipe(code, command).run(folder, settings)


NEW = "--asset ONE --new-assets"
CASES_OF_OTHERS = [
    Shared("w02_small_percent.csv",
           {"ONE": {JAN1 + 82890: "0.000312", JAN2 + 82890: "0.000298", JAN3 + 82890: "0.001105"}},
           f"lend-rate w02_small_percent.csv --time timestamp --value apyBase --percent {NEW}"),
    Shared("w03_kline_open_close.csv", "--stamp",
           f"price w03_kline_open_close.csv --time close_time --value close --time-unit ms {NEW}"),
    Shared("w03_kline_open_close.csv", {"ONE": {DAY1: "110", DAY2: "95"}},
           f"price w03_kline_open_close.csv --time close_time --value close --time-unit ms --stamp end {NEW}"),
    Shared("w03_kline_open_close.csv",
           {"ONE": {**candle(JAN1, "100", "120", "90", "110"), **candle(JAN2, "110", "130", "80", "95")}},
           f"price w03_kline_open_close.csv --time open_time --time-unit ms --candles --stamp begin {NEW}"),
    Shared("w04_currency_column.csv", "EUR",
           "price w04_currency_column.csv --time timestamp --asset-column symbol --value price --new-assets"),
    Shared("w05_two_contracts.csv",
           {"token;0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48": {JAN2: "1.0001"}, f"token;{CHAIN}": {JAN2: "0.0003"}},
           recipe="dune-prices.csv"),
    Shared("w05_two_coin_ids.csv", "btc",
           "price w05_two_coin_ids.csv --time date --asset-column symbol --value price --new-assets"),
    Shared("w07_date_and_time.csv", "recipe", f"price w07_date_and_time.csv --time Date --value Close {NEW}"),
    # 09:30, 09:31 and 16:00 in New York, five hours behind UTC.
    Shared("w07_date_and_time.csv",
           {"ONE": {JAN2 + 52200: "187.2", JAN2 + 52260: "187.4", JAN2 + 11 * 86400 + 75600: "188.4"}},
           f"price clock.csv --stamp end --zone America/New_York {NEW}", "clock.csv",
           {'"<DATE>"': "Date", '"<TIME>"': "Time", '"<CLOSE>"': "Close", "%Y.%m.%d%H:%M:%S": "%m/%d/%Y%H:%M",
            "delim='\\t', ": ""}),
    Shared("w08_file_per_asset", {"BTC": {DAY2: "44957", DAY3: "42848"}, "ETH": {DAY2: "2357", DAY3: "2210"}},
           "price w08_file_per_asset/* --symbol-from SYMBOL-USD.csv --time Date --value Close --new-assets"),
    Shared("w08_file_per_asset", "ONE", f"price w08_file_per_asset/* --time Date --value Close {NEW}"),
    Shared("w10_no_header.csv", "recipe", f"price w10_no_header.csv {NEW}"),
    Shared("w10_no_header.csv", {"BNC": {DAY1: "44179.55", DAY2: "44946.91"}}, recipe="klines.csv"),
    Shared("w13_ohlc.csv", {"ONE": {DAY1: "110", DAY2: "95", DAY3: "70"}},
           f"price w13_ohlc.csv --time Date --value Close {NEW}"),
    Shared("b01_empty_array.json", "b01_empty_array.json", f"price b01_empty_array.json {NEW}"),
    Shared("b01_empty_object.json", "b01_empty_object.json", f"price b01_empty_object.json {NEW}"),
    Shared("b02_graph.json", "recipe", f"price b02_graph.json {NEW}"),
    Shared("b02_graph.json", {"WETH": {DAY2: "2352.12", DAY3: "2210.5"}}, recipe="graph.csv"),
    Shared("b03_all_rejected.csv", "b03_all_rejected.csv",
           f"price b03_all_rejected.csv --time date --value price --skip-invalid {NEW}"),
    # 1381017600 is 2013-10-06.
    Shared("r01_kraken_no_header.csv", {"ONE": {1381017600 + 86399: "122", 1381104000 + 86399: "123.61"}},
           f"price candles.csv --value close --stamp begin --interval 1d {NEW}", "candles.csv"),
    Shared("r02_comments.csv", {"ONE": {DAY2: "44957.97"}}, f"price flux-values.csv --time Date --value Close {NEW}",
           "flux-values.csv", {"_time AS time, symbol AS asset, _value AS value": "*"}),
    # 2022-03-01.
    Shared("r02_url_line_first.csv", {"ONE": {1646092800: "43178.98"}}, f"price closes.csv --time-unit ms {NEW}",
           "closes.csv", {"strptime(Datum, '%d.%m.%Y')::DATE": "Unix", "delim=';', ": "",
                          "replace(replace(Schlusskurs, '.', ''), ',', '.')": "Close"}),
    Shared("r03_metatrader.csv", {"MTR": {JAN2 + HOUR - 1: "42280.5", JAN2 + 2 * HOUR - 1: "42390.1"}},
           recipe="clock.csv"),
    Shared("r04_two_digit_years.csv", "recipe|--time-format",
           f"price r04_two_digit_years.csv --time date --value price {NEW}"),
    # 2024-06-26 and 2024-08-03, by days of the year.
    Shared("r04_two_digit_years.csv", {"ONE": {JAN1 + 178 * 86400 - 1: "1.5", JAN1 + 216 * 86400 - 1: "2.5"}},
           f"price r04_two_digit_years.csv --time date --value price --time-format %d/%m/%y {NEW}"),
    Shared("r04_two_digit_month_name.csv", {"ONE": {DAY2: "1.5", DAY3: "2.5"}},
           f"price r04_two_digit_month_name.csv --time date --value price --time-format %d-%b-%y {NEW}"),
    Shared("r06_months.csv", {"MON": {1535759999: "1201.859", 1535759999 + 30 * 86400: "1199.198"}},
           recipe="last-days.csv"),
    Shared("r08_rfc_dates.csv", {"ONE": {JAN2: "44167.3", JAN3: "44957.9"}},
           f"price r08_rfc_dates.csv --time date --value price --time-format '%a, %d %b %Y %H:%M:%S GMT' {NEW}"),
    Shared("r08_zone_names.csv", {"ZON": {JAN2 + 5 * HOUR: "44167.3", JULY + 4 * HOUR: "44957.9"}},
           recipe="offsets.csv"),
    Shared("r08_zone_id.csv", "recipe|--time-format", f"price r08_zone_id.csv --time date --value price {NEW}"),
    Shared("r08_zone_id.csv", {"ZON": {JULY + 4 * HOUR: "44957.9"}}, recipe="offsets.csv",
           edits={"replace(replace(date, ' EST', '-05:00'), ' EDT', '-04:00')": "split_part(date, '[', 1)"}),
    Shared("r09_scientific_time.csv", {"SCI": {JAN1: "1.5", JAN2: "2.5"}}, recipe="whole.csv"),
    Shared("r10_fall_back.csv", "2024-11-03 01:00:00.*twice|twice.*2024-11-03 01:00:00",
           f"price r10_fall_back.csv --time date --value price --zone America/New_York {NEW}"),
    # 2010-07-18.
    Shared("r11_empty.csv", {"ONE": {1279497599: "0.08584"}}, f"price r11_empty.csv --value PriceUSD {NEW}"),
    Shared("r11_fred_dot.csv", {"ONE": {DAY2: "1.0956"}},
           f"price r11_fred_dot.csv --time observation_date --value DEXUSEU {NEW}"),
    Shared("r11_yahoo_null.csv", {"ONE": {DAY2: "185.6"}}, f"price r11_yahoo_null.csv --time Date --value Close {NEW}"),
    Shared("r12_yfinance_headers.csv", {"YFI": {DAY2: "185.64"}}, recipe="yfinance-closes.csv"),
    Shared("r13_coincap.json", {"CGK": {JAN1: "42265.1877", JAN2: "44172.67"}}, recipe="coingecko.csv",
           edits={"pair[1]": "pair.time", "pair[2]": "pair.priceUsd", "unnest(prices)": "unnest(data)",
                  "prices: 'VARCHAR[][]'": "data: 'STRUCT(time VARCHAR, priceUsd VARCHAR)[]'"}),
    Shared("r13_coingecko.json", "recipe", f"price r13_coingecko.json {NEW}"),
    Shared("r13_coingecko.json", {"CGK": {JAN1: "42208.2", JAN2: "44168.1"}}, recipe="coingecko.csv"),
    Shared("r19_footer.csv", "recipe", f"price r19_footer.csv --time Date --value Close {NEW}"),
    Shared("r19_footer.csv", {"FOO": {DAY2: "44957.97", DAY3: "42848.18"}}, recipe="rows.csv"),
    Shared("r25_unnamed_index.parquet", {"ONE": {JAN2: "1.1", JAN2 + HOUR: "2.2", JAN2 + 2 * HOUR: "3.3"}},
           f"price r25_unnamed_index.parquet --time __index_level_0__ --value close {NEW}"),
    Shared("t01_trades_descending.csv", {"TRDB": {MARCH: "103"}},
           "price t01_trades_descending.csv --asset-column symbol --value price --new-assets"),
    # Two days of 2019, from 1572739200 on.
    Shared("t02_candles_other_order.json",
           {"ONE": {**candle(1572739200, "9306.87", "9500", "8600", "9203.08"),
                    **candle(1572825600, "9202.9", "9343.52", "9130.01", "9273.22")}},
           f"price api-klines.csv --candles --stamp begin --interval 1d {NEW}", "api-klines.csv",
           {"json[7] AS time, json[5] AS value":
            "json[1] AS time, json[2] AS low, json[3] AS high, json[4] AS open, json[5] AS close"}),
    Shared("t02_candles_other_order.json", "open",
           f"price api-klines.csv --candles --stamp begin --interval 1d {NEW}", "api-klines.csv",
           {"json[7] AS time, json[5] AS value":
            "json[1] AS time, json[2] AS open, json[3] AS high, json[4] AS low, json[5] AS close"}),
    Shared("t03_pairs.csv", "EUR", "price t03_pairs.csv --asset-column pair --value price --new-assets"),
    Shared("t04_backslash_n.tsv", {"PGTA": {MARCH: "1.5", MARCH + 2 * HOUR: "2.5"}},
           "price klines.csv --new-assets", "klines.csv",
           {"close_time AS time, close AS value": "*", "header=false": "header=false, delim='\\t'",
            "['open_time', 'open', 'high', 'low', 'close', 'volume', 'close_time']": "['time', 'asset', 'value']"}),
    Shared("t05_flux.csv",
           {"FLUXA": {MARCH: "61.25", MARCH + HOUR: "62.5"},
            "FLUXB": {MARCH: "1.5", MARCH + HOUR: "1.75"}}, recipe="flux-values.csv"),
    Shared("t06_contradicting_dates.csv", "line 3.*06/13/2018",
           f"price t06_contradicting_dates.csv --time date --value price --time-format %d/%m/%Y {NEW}"),
    Shared("t07_german.csv", {"DAX": {DAY2 - HOUR: "1234.56", DAY3 - HOUR: "1240"}}, recipe="closes.csv"),
]  # fmt: skip


of_others = pytest.mark.skipif(not SHARED.exists(), reason="ANALYTICS_TEST_DATA is not set")


@of_others
@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[] if isinstance(case.expected, str) else pytest.mark.slow, id=f"{case.file}-{number}")
        for number, case in enumerate(CASES_OF_OTHERS)
    ],
)
def test_a_file_of_others_is_right_or_refused(settings: Settings, tmp_path: Path, run: Run, case: Shared) -> None:
    """A refusal writes nothing."""
    done = case.run(tmp_path, settings)
    if isinstance(case.expected, str):
        assert done.exit_code == 2, done.output
        assert re.search(case.expected, done.output, re.IGNORECASE), done.output
        assert run("SELECT count() FROM observation") == [(0,)]
    else:
        assert done.exit_code == 0, done.output
        expect_rows(run, "lend-rate" if case.words.startswith("lend-rate") else "price", case.expected)


ROWS = "timestamp AS time, lower(action) AS action, user AS address, symbol, amount AS amount_denom, id"
INDEXED = "block_time AS time, action, borrower AS address, symbol, amount AS units, amount_usd AS usd, tx_hash"


@of_others
@pytest.mark.parametrize(
    ("file", "columns", "priced", "expected"),
    [
        ("w01_decimals_events.csv", "*", "--new-assets", r"lacks the columns time, .* columns 'timestamp', .*recipes"),
        ("w01_decimals_events.csv", ROWS, "--new-assets", "needs the decimals of USDC"),
        # 1,500.5 at 1.0001 USD, and 2.5 at 2,352.12 USD.
        ("w01_decimals_events.csv", ROWS, "--assets assets.csv",
         [("borrow", "1500500000", "1500.65005"), ("borrow", "2500000000000000000", "5880.3")]),
        ("w11_evt_index.csv", f"{INDEXED}, evt_index AS id", "--assets assets.csv", "'12' is the id of another event"),
        ("w11_evt_index.csv", INDEXED, "--assets assets.csv",
         [("borrow", "100000000", "100"), ("borrow", "300000000", "300")]),
    ],
)  # fmt: skip
def test_events_of_others_are_right_or_refused(
    store: Store, settings: Settings, tmp_path: Path, file: str, columns: str, priced: str, expected: str | list[object]
) -> None:
    """Beside prices of days before, with which the assets are described or not."""
    settings = replace(settings, price_max_age=7 * 86_400)
    shutil.copy(SHARED / "w01_decimals_prices.csv", tmp_path / "prices.csv")
    shutil.copy(SHARED / "assets.csv", tmp_path)
    shutil.copy(SHARED / file, tmp_path)
    done = Recipe("", PRICES.replace("--assets assets.csv", priced)).run(tmp_path, settings)
    assert done.exit_code == 0, done.output
    code = f"duckdb.sql(\"SELECT {columns} FROM read_csv('{file}', all_varchar=true)\").write_csv('events.csv')"
    done = Recipe(code, "analytics-service import events events.csv").run(tmp_path, settings)
    assert done.exit_code == (2 if isinstance(expected, str) else 0), done.output
    if isinstance(expected, str):
        assert re.search(expected, done.output), done.output
    else:
        assert events_of(settings, store, ALICE) == expected
