"""Addresses that differ only in case are one asset (rule 3.4); a store that has two of it keeps them apart."""

from dataclasses import replace

import pytest

from analytics_service.errors import EntityNotFound, ParameterInvalid
from analytics_service.importing.asset_names import AssetNames
from analytics_service.market.assets import Asset, AssetGroup, resolve_ids, unknown_asset


def asset(symbol: str, key: str, decimals: int = 18) -> Asset:
    return Asset(AssetGroup.TOKEN, key, symbol, symbol, symbol.lower(), decimals, min(decimals, 6))


UPPER, LOWER = asset("UP", "0xAB"), asset("LOW", "0xab")


def ids_of(names: AssetNames, *texts: str) -> list[str | None]:
    return [names.named(text).asset_id for text in texts]


def known(*assets: Asset, add_new: bool = False) -> AssetNames:
    return AssetNames([], assets, add_new=add_new)


@pytest.mark.parametrize(
    ("stored", "addresses", "ids", "new"),
    [
        ([], ["0xAB", "0xab", "0xAb"], ["token;0xAB"] * 3, ["token;0xAB"]),
        ([UPPER], ["0xab", "0xAB"], [UPPER.id] * 2, []),
        ([LOWER], ["0xab", "0xAB"], [LOWER.id] * 2, []),
        # An address is not the native asset whose denom it spells.
        ([replace(asset("ORB", "uorb"), group=AssetGroup.NATIVE)], ["uorb"], ["token;uorb"], ["token;uorb"]),
        ([replace(asset("ORB", "0xab"), group=AssetGroup.NATIVE)], ["0xab"], ["token;0xab"], ["token;0xab"]),
        # Addresses of other forms differ by case.
        ([asset("A", "AB")], ["ab", "AB", "Ab"], ["token;ab", "token;AB", "token;Ab"], ["token;ab", "token;Ab"]),
    ],
)
def test_rows_describe_an_asset_by_its_first_spelling_unless_it_is_known(
    stored: list[Asset], addresses: list[str], ids: list[str], new: list[str]
) -> None:
    names = known(*stored, add_new=True)
    named = ids_of(names, *(f"token;{address}" for address in addresses))
    assert (named, list(names.new)) == (ids, new)


def test_names_may_be_in_another_case_than_the_asset() -> None:
    names = known(UPPER, asset("A", "ab"))
    assert ids_of(names, "token;0xAB", "token;0xab", "token;0Xab", "0xab", "up") == [UPPER.id] * 5
    assert all(names.named(name).fault for name in ("native;0xab", "token;AB"))


def test_symbols_and_ids_keep_assets_apart_that_are_stored_in_two_cases() -> None:
    for stored in ((UPPER, LOWER), (LOWER, UPPER)):
        names = known(*stored)
        assert ids_of(names, "UP", "token;0xAB") == [UPPER.id] * 2
        assert ids_of(names, "LOW", "token;0xab") == [LOWER.id] * 2


def test_a_symbol_in_a_file_means_the_assets_that_spell_it_so_before_others() -> None:
    """In a request it means all of them."""
    both = {one.id: one for one in (asset("ATOM", "a"), asset("Atom", "b"))}
    with pytest.raises(ParameterInvalid, match=r"is the symbol of several assets; .*: token;a, token;b"):
        resolve_ids(["ATOM"], both)
    names = known(*both.values())
    assert ids_of(names, "Atom") == ["token;b"]
    assert names.named("Aton").fault.startswith("is an unknown asset (did you mean ATOM?); ")


def test_one_function_finds_assets_by_id_address_and_symbol_and_says_what_is_near() -> None:
    both = (replace(unknown_asset("token;0xAb"), symbol="ATOM"), unknown_asset("native;uosmo"))
    assets = {one.id: one for one in both}
    assert resolve_ids(["token;0xaB", "0xAB", "atom", "native;new"], assets) == [*["token;0xAb"] * 3, "native;new"]
    with pytest.raises(EntityNotFound, match=r"'atmo' is the symbol of no asset\. Did you mean ATOM\?"):
        resolve_ids(["atmo"], assets)
