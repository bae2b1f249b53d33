"""Faults of parameters, in the order in which they are reported (rule 3.2)."""

import pytest
from falcon.testing import create_req

from analytics_service.http import params
from analytics_service.http.declared_params import parse_params
from analytics_service.http.errors import RequestError


@pytest.mark.parametrize(
    ("query", "address", "kind"),
    [
        ("extra=1", "x", "query_parameter_unknown"),
        ("with_text=x", "x", "query_parameter_missing"),
        ("asset_id=a;b&with_text=x", "x", "path_parameter_invalid"),
        ("asset_id=a;b", "0x" + "0" * 40, "query_parameter_invalid"),
    ],
)
def test_unknown_parameters_come_first_then_missing_ones_then_the_path_then_the_query(
    query: str, address: str, kind: str
) -> None:
    req = create_req(query_string=query)
    with pytest.raises(RequestError) as caught:
        parse_params(req, (*params.ASSET, params.WITH_TEXT), (params.ADDRESS,), {"address": address})
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("index=0&index=1", "Query parameter index was given 2 times, as '0, 1': give it once."),
        ("index=0&duration=60", "Give only one of index='0' and duration='60'."),
    ],
)
def test_parameters_that_are_given_too_often_are_named_with_their_values(query: str, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_params(create_req(query_string=query), (params.POOL_INDEX, params.POOL_DURATION))
    assert str(caught.value) == message


def test_parameters_of_the_path_are_parsed_along_with_those_of_the_query() -> None:
    req = create_req(query_string="asset_id=native%3Buorb")
    parsed = parse_params(req, params.ASSET, (params.ADDRESS,), {"address": "0x" + "A" * 40})
    assert parsed == {"address": "0x" + "a" * 40, "asset_id": "native;uorb", "symbol": None}
