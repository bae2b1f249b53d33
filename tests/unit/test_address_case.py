"""Addresses that differ only in case are one asset (rule 3.4); a store that has two of it keeps them apart."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from analytics_service.errors import ImportRefused
from analytics_service.imports.assets_file import read_assets_file
from analytics_service.imports.described_assets import read_described_assets
from analytics_service.imports.families import RATES
from analytics_service.imports.forms import FormTable, recognized
from analytics_service.imports.opening import open_table
from analytics_service.imports.validation import Names, Rules, validate_file
from analytics_service.market.assets import Asset, AssetGroup
from tests.unit.price_files import HEADER, asset, judge, written

NOW = datetime(2025, 3, 1, 12, tzinfo=UTC)
RATES_HEADER = (
    "asset_address,timestamp,symbol,decimals,borrowing_enabled,current_liquidity_rate,current_variable_borrow_rate\n"
)
UPPER, LOWER = asset("UP", "0xAB"), asset("LOW", "0xab")


def rates_table(folder: Path, *addresses: str) -> FormTable:
    """A file of rates with a row for each address, at one second after another."""
    rows = [f"{address},{second},SYM,18,True,0.1,0.2\n" for second, address in enumerate(addresses)]
    return recognized(open_table(written(folder, RATES_HEADER + "".join(rows))), RATES.forms)


def ids_of(table: FormTable, names: Names) -> list[str]:
    """The assets of all rows."""
    file = validate_file(table, Rules(names, "s", NOW), lambda bad: None, lambda size: None)
    assert file.rejected == 0
    return [str(one) for one in pl.concat(file.good)["asset"]]


def test_a_file_of_rates_describes_one_asset_by_its_first_spelling(tmp_path: Path) -> None:
    table = rates_table(tmp_path, "0xAB", "0xab", "0xAb")
    described = read_described_assets([table], known_assets=[])
    assert [one.id for one in described] == ["token;0xAB"]
    assert ids_of(table, Names.of(described, [])) == ["token;0xAB"] * 3


@pytest.mark.parametrize("known", [UPPER, LOWER])
def test_a_file_of_rates_describes_no_asset_that_is_known_in_another_spelling(tmp_path: Path, known: Asset) -> None:
    table = rates_table(tmp_path, "0xab", "0xAB")
    assert read_described_assets([table], known_assets=[known]) == []
    assert ids_of(table, Names.of([], [known])) == [known.id] * 2


@pytest.mark.parametrize("denom", ["uorb", "0xab"])
def test_an_address_in_a_file_of_rates_is_not_the_native_asset_whose_denom_it_spells(
    tmp_path: Path, denom: str
) -> None:
    native = replace(asset("ORB", denom), group=AssetGroup.NATIVE)
    table = rates_table(tmp_path, denom)
    described = read_described_assets([table], known_assets=[native])
    assert [one.id for one in described] == [f"token;{denom}"]
    assert ids_of(table, Names.of(described, [native])) == [f"token;{denom}"]


def test_addresses_of_other_forms_in_a_file_of_rates_differ_by_case(tmp_path: Path) -> None:
    known = asset("OTHER", "AB")
    table = rates_table(tmp_path, "ab", "AB", "Ab")
    described = read_described_assets([table], known_assets=[known])
    assert [one.id for one in described] == ["token;ab", "token;Ab"]
    assert ids_of(table, Names.of(described, [known])) == ["token;ab", "token;AB", "token;Ab"]


@pytest.mark.parametrize(("listed", "registered"), [(UPPER, LOWER), (LOWER, UPPER)])
def test_an_address_means_the_listed_asset_rather_than_a_registered_one(
    tmp_path: Path, listed: Asset, registered: Asset
) -> None:
    table = rates_table(tmp_path, "0xab", "0xAB")
    assert ids_of(table, Names.of([listed], [registered])) == [listed.id] * 2


def test_ids_in_a_file_may_be_in_another_case_than_the_asset(tmp_path: Path) -> None:
    ids = "asset_id,ts,price\ntoken;0xAB,100,1\ntoken;0xab,101,2\ntoken;0Xab,102,3\nnative;0xab,103,4\n"
    good, bad = judge(written(tmp_path, ids), names=Names.of([], [UPPER]))
    assert [row[0] for row in good] == ["token;0xAB"] * 3
    assert bad == [(5, "unknown asset_id: neither in the assets file (--assets) nor in the store")]


def test_ids_that_are_no_hex_addresses_keep_their_case(tmp_path: Path) -> None:
    good, bad = judge(written(tmp_path, "asset_id,ts,price\ntoken;AB,100,1\n"), names=Names.of([], [asset("A", "ab")]))
    assert (good, len(bad)) == ([], 1)


def test_symbols_and_ids_keep_assets_apart_that_are_stored_in_two_cases(tmp_path: Path) -> None:
    names = Names.of([], [UPPER, LOWER])
    good, bad = judge(written(tmp_path, f"{HEADER}UP,100,1\nLOW,100,2\n"), names=names)
    assert ([row[0] for row in good], bad) == (["token;0xAB", "token;0xab"], [])
    ids = "asset_id,ts,price\ntoken;0xAB,100,1\ntoken;0xab,100,2\ntoken;0xaB,100,3\n"
    good, bad = judge(written(tmp_path, ids), names=names)
    assert [row[0] for row in good] == ["token;0xAB", "token;0xab"]
    assert bad == [(4, "unknown asset_id: neither in the assets file (--assets) nor in the store")]


def test_an_assets_file_cannot_list_both_under_different_symbols(tmp_path: Path) -> None:
    path = written(tmp_path, "symbol,address,decimals\nUP,0xAB,18\nLOW,0xab,18\n", "assets.csv")
    with pytest.raises(ImportRefused, match="the address is that of UP with 18 decimals further up"):
        read_assets_file(path)


def test_an_assets_file_may_repeat_an_asset_in_another_case(tmp_path: Path) -> None:
    path = written(tmp_path, "symbol,address,decimals\nUP,0xAB,18\nUP,0xab,18\n", "assets.csv")
    assert read_assets_file(path) == [UPPER]


def test_addresses_of_other_forms_differ_by_case(tmp_path: Path) -> None:
    path = written(tmp_path, "symbol,address,decimals\nUP,AB,18\nLOW,ab,18\n", "assets.csv")
    assert [one.id for one in read_assets_file(path)] == ["token;AB", "token;ab"]
