"""Asset ids are found in any case of a hex address, and shown as they are stored (rule 3.4)."""

import pytest

from analytics_service.market.assets import stored_id

STORED = ["native;uAtom", "token;0xAb", "token;bech1q"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (["token;0xAb"], ["token;0xAb"]),
        (["token;0xab", "token;0xAB", "token;0XAB"], ["token;0xAb"]),
        # Only the keys of tokens that are hex addresses have no case.
        (["native;uatom", "token;BECH1q"], ["native;uatom", "token;BECH1q"]),
        (["token;0xCD", "native;uAtom"], ["token;0xCD", "native;uAtom"]),
        (["token;bech1q", "token;0xaB", "token;bech1q"], ["token;bech1q", "token;0xAb"]),
        ([], []),
    ],
)
def test_ids_are_found_in_any_case_and_each_once(asked: list[str], found: list[str]) -> None:
    assert stored_id(asked, STORED) == found


def test_an_id_that_is_stored_in_two_cases_is_found_as_it_is_written() -> None:
    stored = ["token;0xAB", "token;0xab"]
    assert stored_id(["token;0xab", "token;0xAB"], stored) == ["token;0xab", "token;0xAB"]
    assert stored_id(["token;0xaB"], stored) == ["token;0xab"]
