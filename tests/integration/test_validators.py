"""Codings, validators and HEAD on each kind of route (rule 7.1)."""

import gzip
import re
from dataclasses import replace
from decimal import Decimal

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from tests.doubles import FreshHeads
from tests.integration.pages import commit
from tests.integration.routes import ALL_KINDS, NOON, PRICES, ROUTES, Client, client_of, get

CODINGS = ("identity", "gzip")
# What a 304 says, too.
KEPT = {"etag", "cache-control", "vary", "last-modified", "as-of", "history-begins", "x-request-id"}
KEPT |= {"access-control-allow-origin", "access-control-expose-headers"}
# Shorter bodies are sent as they are.
COMPRESSED_FROM = 1024
of_each_kind = pytest.mark.parametrize("path", ALL_KINDS.values(), ids=ALL_KINDS)


@of_each_kind
def test_head_has_the_headers_of_get_and_no_body(protocol: Client, path: str) -> None:
    for coding in CODINGS:
        query, accepted = ROUTES[path].query, {"Accept-Encoding": coding}
        full = protocol.simulate_get(path, query_string=query, headers=accepted)
        head = protocol.simulate_head(path, query_string=query, headers=accepted)
        assert (head.status, head.content, dict(head.headers)) == (full.status, b"", dict(full.headers))
        assert int(head.headers["content-length"]) == len(full.content)


@of_each_kind
def test_an_answer_is_the_same_in_every_requested_coding(protocol: Client, path: str) -> None:
    answers = {coding: get(protocol, path, Accept_Encoding=coding) for coding in CODINGS}
    plain = answers["identity"].content
    assert answers["identity"].headers.get("content-encoding") is None
    answer = answers["gzip"]
    encoding = answer.headers.get("content-encoding")
    assert encoding == ("gzip" if len(plain) >= COMPRESSED_FROM else None)
    assert (gzip.decompress(answer.content) if encoding else answer.content) == plain
    assert (len(answer.content) < len(plain)) == (encoding is not None)
    assert "Accept-Encoding" in answer.headers["vary"]
    assert len({answer.headers["etag"] for answer in answers.values()}) == (2 if encoding else 1)


@of_each_kind
def test_a_caller_that_has_the_answer_gets_a_304_without_a_body(protocol: Client, path: str) -> None:
    for method, coding in (("GET", "identity"), ("GET", "gzip"), ("HEAD", "gzip")):
        full = get(protocol, path, Accept_Encoding=coding, If_None_Match='"other"')
        etag = full.headers["etag"]
        assert (full.status_code, re.fullmatch(r'"[!-~]+"', etag) is not None) == (200, True)
        expected = {name: value for name, value in full.headers.items() if name in KEPT}
        for if_none_match in (etag, f"W/{etag}", f'"other", {etag}', "*"):
            headers = {"Accept-Encoding": coding, "If-None-Match": if_none_match}
            answer = protocol.simulate_request(method, path, query_string=ROUTES[path].query, headers=headers)
            assert (answer.status_code, answer.content, dict(answer.headers)) == (304, b"", expected)


def test_a_closed_page_is_revalidated_after_a_snapshot(settings: Settings, store: Store) -> None:
    commit(store, {"token;a": [(NOON - 7200, Decimal(1)), (NOON, Decimal(2))]})
    client = client_of(settings, store, NOON + 3600, FreshHeads)
    query = f"start={NOON - 10_000}&end={NOON - 3601}&period=h&asset_ids=token;a"
    first = get(client, PRICES, query)
    assert first.headers["as-of"] == f"prices=@{NOON - 7200}"
    commit(store, {"token;a": [(NOON + 60, Decimal(3))]})
    again = get(client, PRICES, query, If_None_Match=first.headers["etag"])
    assert (again.status_code, again.headers["as-of"]) == (304, first.headers["as-of"])


def test_the_zone_of_the_setting_is_the_default_and_part_of_the_answer(settings: Settings, store: Store) -> None:
    commit(store, {"token;a": [(NOON, Decimal(1))]})
    query = f"start={NOON - 86_400}&end={NOON}&period=d"
    utc, york = (client_of(replace(settings, tz=zone), store) for zone in ("UTC", "America/New_York"))
    named, unnamed, other = (
        get(client, PRICES, query + zone) for client, zone in ((utc, "&tz=America/New_York"), (york, ""), (utc, ""))
    )
    assert unnamed.json == named.json != other.json
    assert unnamed.headers["etag"] == named.headers["etag"] != other.headers["etag"]
