"""Assets files: the assets in them, and which files are refused."""

import gzip
from pathlib import Path

import pytest

from analytics_service.errors import UserError
from analytics_service.importing.asset_names import AssetNames
from analytics_service.importing.assets import read_assets_file
from analytics_service.market.assets import Asset, AssetGroup
from tests.unit.history_files import written
from tests.unit.test_address_case import asset


def test_a_symbol_of_two_registered_assets_is_ambiguous_unless_the_assets_file_has_it() -> None:
    registered = [asset("AAA", "0x1"), asset("AAA", "0x2"), asset("BBB", "0x3")]
    names = AssetNames([], registered, add_new=False)
    assert names.named("AAA").fault == ("is the symbol of several assets; write an id: token;0x1, token;0x2")
    names = AssetNames([asset("AAA", "0x2"), asset("BBB", "0x9")], registered, add_new=False)
    assert [names.named(name).asset_id for name in ("AAA", "BBB")] == ["token;0x2", "token;0x9"]


def read_assets(folder: Path, text: str) -> list[Asset]:
    return read_assets_file(written(folder, text, "assets.csv"))


def test_assets_of_an_export_whose_decimals_are_not_known_are_left_out(tmp_path: Path) -> None:
    text = "asset_id,symbol,decimals,decimals_known\nnative;a,A,0,false\nnative;b,B,0,true\n"
    assert [one.id for one in read_assets(tmp_path, text)] == ["native;b"]


def test_the_assets_of_a_file_are_tokens_by_address(tmp_path: Path) -> None:
    text = 'Decimals,symbol,address,note\n6,USDT,0xdAC1,"a, b"\n0, ONE ,0x2,\n6,USDT,0xdac1,again\n'
    assert read_assets(tmp_path, text) == [
        Asset(AssetGroup.TOKEN, "0xdAC1", "USDT", "USDT", "usdt", 6, 6),
        Asset(AssetGroup.TOKEN, "0x2", "ONE", "ONE", "one", 0, 0),
    ]


def test_a_file_of_this_service_has_ids_in_place_of_addresses(tmp_path: Path) -> None:
    assert read_assets(tmp_path, "asset_id,symbol,name,kind,decimals\nnative;u2,TWO,Two,regular,6\n") == [
        Asset(AssetGroup.NATIVE, "u2", "Two", "TWO", "two", 6, 6)
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "symbol,address\nA,0x1\n",
            "has the columns 'symbol, address'. It needs symbol, address, decimals",
        ),
        # A terminal would take what a binary file holds for orders.
        ("symbol,\x1b[2J\nA,0x1\n", r"has the columns 'symbol, \\x1b\[2J'"),
        ("symbol,address,decimals\n", "names no assets"),
        ("", "is empty"),
        ("symbol,address,decimals\nA,0x1,18\n,0x2,18\n", "line 3: .*a symbol has 1 to 100"),
        *(
            (f'symbol,address,decimals\n"{symbol}",0x1,18\n', "a symbol has 1 to 100 printable characters")
            for symbol in ("=A", " =A", "A,B", "A\x85A", "A\ufffdA", "A" * 101)
        ),
        (f"symbol,address,decimals,name\nA,0x1,18,{'A' * 101}\n", "the name has more than 100 characters"),
        *(
            (f"symbol,address,decimals\nA,{address},18\n", "line 2: .*an address has 1 to 100 printable")
            for address in ("", "0x1;2", "0x1\x7f1")
        ),
        *((f"symbol,address,decimals\nA,0x1,{decimals}\n", "from 0 to 77") for decimals in ("78", "-1", "1.5", "")),
        ("symbol,address,decimals\nA,0x1,18\nB,0x2,6,7\n", "line 3 has 4 fields, but line 1 has 3 columns"),
        # Addresses of hex digits have no case.
        *(
            (f"symbol,address,decimals\nA,0xAB,18\n{line}\n", "an earlier line has A at 0xAB with 18 decimals")
            for line in ("A,0x2,18", "B,0xAB,18", "A,0xAB,6", "B,0xab,18")
        ),
    ],
)
def test_a_wrong_assets_file_is_refused_with_a_reason(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_assets(tmp_path, text)


def test_an_assets_file_may_be_compressed_and_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "assets.csv.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfsymbol,address,decimals\r\nA,0x1,18\r\n"))
    assert read_assets_file(path) == [Asset(AssetGroup.TOKEN, "0x1", "A", "A", "a", 18, 6)]
