"""Which columns of a file are the time, the value and the asset, and what is asked where that is not clear."""

from decimal import Decimal
from pathlib import Path

import pytest

from analytics_service.errors import ImportRefused
from analytics_service.imports.layout import ColumnChoice
from analytics_service.imports.names import AssetNames
from analytics_service.imports.times import TimeRules
from analytics_service.market.assets import unknown_asset
from analytics_service.store.datasets import histories
from analytics_service.store.datasets.histories import History
from tests.unit.history_files import BY_NAME, IN_UTC, loaded, rows_of, written

SECOND = 1_704_067_200
ETH = ("native;ETH", SECOND, Decimal("1.5"))
OF_ETH = ColumnChoice(symbol="ETH")


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("time,symbol,price\n1704067200,ETH,1.5\n", BY_NAME),
        ('"Date","TICKER","USD"\n2024-01-01T00:00Z,ETH,1.5\n', BY_NAME),
        # pandas and R write an index without a name, price sites further columns.
        (",Block Time,Asset,USD_price\n0,1704067200,ETH,1.5\n", BY_NAME),
        ("snapped_at,price,market_cap,total_volume\n2024-01-01 00:00:00 UTC,1.5,2.5e9,\n", OF_ETH),
        (
            "open_time;open;high;low;close;close_time\n1704063600000;9;9;9;1.5;1704067200000\n",
            ColumnChoice("Open Time", symbol="ETH"),
        ),
        (",ETH,BTC\n2024-01-01T00:00Z,1.5,\n", ColumnChoice(wide=True)),
        # A pair with USD, or what is worth as much, is its base.
        ("time,symbol,price\n1704067200,ETH/USD,1.5\n", BY_NAME),
        ("time,symbol,price\n1704067200,ETH-usdt,1.5\n", BY_NAME),
        ("time,symbol,price,currency\n1704067200,ETH_USDC,1.5,usd\n", BY_NAME),
        ("time,price\n1704067200,1.5\n", ColumnChoice(symbol="ETH/DAI")),
        ("Date,ETH-USD\n2024-01-01T00:00Z,1.5\n", ColumnChoice(wide=True)),
        ("blockTime,assetId,usdPrice\n1704067200,ETH,1.5\n", BY_NAME),
        ("id,time,price\n1,1704067200,1.5\n", OF_ETH),
        ("time,symbol,price\n1704067200,ETHUSD,1.5\n", OF_ETH),
        ("time,symbol,price\n1704067200,XET,1.5\n", ColumnChoice(symbol="ETH", asset="symbol")),
        ("time,symbol,Price,price\n1704067200,ETH,9,1.5\n", ColumnChoice(value="price")),
        ("Date,,ETH,BTC\n2024-01-01T00:00Z,7,1.5,\n", ColumnChoice(wide=True)),
        # The column named as the symbol comes before those with usual names, and one beside the time needs none.
        ("time,USD,ETH\n1704067200,9,1.5\n", OF_ETH),
        ("time,fixing\n1704067200,1.5\n", OF_ETH),
        ("Date,ETH\n2024-01-01T00:00Z,1.5\n2024-01-02T00:00Z,\n", ColumnChoice(wide=True)),
    ],
)
def test_columns_are_known_by_name_or_named(tmp_path: Path, text: str, choice: ColumnChoice) -> None:
    assert rows_of(loaded(written(tmp_path, text), choice=choice, times=IN_UTC)) == [ETH]


@pytest.mark.parametrize(
    ("text", "choice", "message"),
    [
        ("time,symbol,price\n1704067200,BTC/EUR,1\n", BY_NAME, "'BTC/EUR' is BTC in EUR, and prices are in USD"),
        ("time,price\n1704067200,1\n", ColumnChoice(symbol="ETH_BTC"), "'ETH_BTC' is ETH in BTC"),
        ("time,ETH-BTC\n1704067200,1\n", ColumnChoice(wide=True), "'ETH-BTC' is ETH in BTC"),
        ("time,symbol,price\n1704067200,BTC/EUR,1\n", ColumnChoice(symbol="BTC"), "line 2: 'BTC/EUR': .*BTC in EUR"),
        ("time,symbol,price,currency\n1704067200,BTC,1,EUR\n", BY_NAME, "column 'currency'.*line 2: 'EUR'"),
        ("time,base,Quote Asset,price\n9,A,USDT,1\n10,A,BTC,1\n", ColumnChoice(asset="base"), "'Quote Asset'.*'BTC'"),
    ],
)
def test_prices_that_are_not_in_usd_are_refused(tmp_path: Path, text: str, choice: ColumnChoice, message: str) -> None:
    with pytest.raises(ImportRefused, match=message):
        loaded(written(tmp_path, text), choice=choice, times=TimeRules("UTC", "s"))


def test_what_the_store_has_is_no_pair_nor_is_a_symbol_with_a_dash() -> None:
    names = AssetNames([], [unknown_asset("native;ETH-USD")], add_new=True, pairs=True)
    ids = [names.ids[names.named(name).code or 0] for name in ("eth-usd", "ETH/USD", "UNI-V2")]
    assert ids == ["native;ETH-USD", "native;ETH", "native;UNI-V2"]


def test_columns_that_are_not_used_are_named(tmp_path: Path) -> None:
    content = loaded(written(tmp_path, ",t,symbol,price,volume\n0,1704067200,ETH,1.5,7\n"))
    assert content.files[0].layout.ignored == ["", "volume"]


@pytest.mark.parametrize(
    ("header", "choice", "message"),
    [
        ("when,symbol,price", BY_NAME, r"none has a usual name of the time\. Name it with --time"),
        ("1704067200,2281.87,3.2", OF_ETH, "seems to be data, such as '1704067200'.*--columns"),
        ("date,timestamp,symbol,price", BY_NAME, r"could be the time: date, timestamp\. Name it with --time"),
        ("t,symbol,cost", BY_NAME, r"usual name of the value\. Name it with --value; if each column .* --wide"),
        ("t,symbol,price,close", BY_NAME, r"could be the value: price, close\. Name it with --value, such as 'close'"),
        ("t,symbol,price,v", BY_NAME, r"could be the value: price, v\. Name it with --value\."),
        ("t,symbol,price,price", BY_NAME, "several columns 'price'. Give each column a name of its own"),
        ("t,symbol,price,price", ColumnChoice(value="price"), "Give each column a name of its own"),
        ("t,price", BY_NAME, r"usual name of the asset\. Name it with --asset; .* say --symbol .* say --wide"),
        ("t,symbol,asset_address,price", BY_NAME, r"could be the asset: symbol, asset_address\. Name it with --asset"),
        ("t,symbol,price", ColumnChoice(value="apr"), "has no column 'apr'; it has 't, symbol, price'"),
        ("t,symbol,price", ColumnChoice(candles=True), "has no columns open, high and low"),
        ("t,ETH", ColumnChoice(candles=True, wide=True), "Leave out --candles"),
        ("1704067200,ETH,1.5", ColumnChoice("1704067200", "1.5", "ETH"), "seems to be data, such as '1704067200'"),
        ("t", ColumnChoice(wide=True), "has no column but the time"),
        ("t,ETH,eth", ColumnChoice(wide=True), "columns 'ETH' and 'eth' of .* are of the same asset"),
        ("t,ETH,ETH", ColumnChoice(wide=True), "are of the same asset"),
        ("t,symbol,price", ColumnChoice(symbol="ETH", wide=True), "--symbol and --wide exclude each other"),
        ("t,symbol,price", ColumnChoice(asset="symbol", wide=True), "--asset and --wide exclude each other"),
        ("t,symbol,price", ColumnChoice(value="price", wide=True), "Leave out --value"),
    ],
)
def test_columns_that_are_not_clear_are_refused_with_the_way_out(
    tmp_path: Path, header: str, choice: ColumnChoice, message: str
) -> None:
    with pytest.raises(ImportRefused, match=message):
        loaded(written(tmp_path, f"{header}\n"), choice=choice)


ASSETS = "t,symbol,usd\n1704067200,ETH,1\n1704067200,BTC,2\n"


@pytest.mark.parametrize(
    ("history", "choice", "message"),
    [
        (histories.LOANS, OF_ETH, "line 2: 'ETH' and .*line 3: 'BTC'. Leave out --symbol"),
        (histories.TVL, BY_NAME, "line 2: 'ETH' and .*line 3: 'BTC'. The history tvl has no assets"),
        (histories.TVL, OF_ETH, "The history tvl has no assets. Leave out --symbol"),
        (histories.TVL, ColumnChoice(wide=True), "The history tvl has no assets. Leave out --wide"),
        (histories.TVL, ColumnChoice(asset="symbol"), "The history tvl has no assets. Leave out --asset"),
    ],
)
def test_assets_are_never_taken_for_each_other_or_for_their_sum(
    tmp_path: Path, history: History, choice: ColumnChoice, message: str
) -> None:
    with pytest.raises(ImportRefused, match=message):
        loaded(written(tmp_path, ASSETS), history=history, choice=choice)


def test_columns_that_may_be_rates_are_named(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match=r"Name it with --value.* Rates may be: apyBase, apy"):
        loaded(written(tmp_path, "t,symbol,tvlUsd,apyBase,apy\n"), history=histories.LEND_RATES)


def test_a_history_that_has_both_is_by_asset_or_the_sum(tmp_path: Path) -> None:
    by_asset = loaded(written(tmp_path, ASSETS), history=histories.LOANS)
    assert [row[0] for row in rows_of(by_asset)] == ["native;BTC", "native;ETH"]
    total = loaded(written(tmp_path, "t,usd\n1704067200,1.5\n"), history=histories.LOANS)
    assert rows_of(total) == [("", SECOND, Decimal("1.5"))]


def test_rows_of_a_view_need_no_options(tmp_path: Path) -> None:
    """Rates are fractions, and the sum over all assets stands beside the assets. Exact values come before floats."""
    rates = "asset_id,symbol,observed_at,apr\nnative;ETH,ETH,2024-01-01T00:00:00.000Z,1.5\n"
    assert rows_of(loaded(written(tmp_path, rates), history=histories.LEND_RATES)) == [ETH]
    exact = rates.replace("apr", "apr,value_exact").replace("1.5", "1.4999999999999998,1.5")
    assert rows_of(loaded(written(tmp_path, exact), history=histories.LEND_RATES)) == [ETH]
    named = loaded(
        written(tmp_path, exact.replace(",1.5", ",7")), history=histories.LEND_RATES, choice=ColumnChoice(value="apr")
    )
    assert rows_of(named)[0][2] == Decimal("1.4999999999999998")
    loans = rates.replace("apr", "usd") + '"","",2024-01-01T00:00:00.000Z,7\n'
    assert rows_of(loaded(written(tmp_path, loans), history=histories.LOANS)) == [("", SECOND, Decimal(7)), ETH]


def test_of_totals_of_several_histories_those_are_read_that_are_asked_for(tmp_path: Path) -> None:
    both = "history,observed_at,usd,value_exact\ntvl,2024-01-01T00:00:00.000Z,7,7\n"
    totals = written(tmp_path, both + "loans_originated,2024-01-01T00:00:00.000Z,8.5,8.5\n")
    assert rows_of(loaded(totals, history=histories.TVL)) == [("", SECOND, Decimal(7))]
    assert rows_of(loaded(totals, history=histories.LOANS)) == [("", SECOND, Decimal("8.5"))]
    with pytest.raises(ImportRefused, match="has totals, of which none is of deposits"):
        loaded(totals, history=histories.DEPOSITS)
