"""Headers of answers, and when a 304 is sent."""

import falcon
import falcon.testing
import pytest

from analytics_service.http.answer import Answer, Validators, send
from analytics_service.http.coding import IDENTITY, Coding

GZIP = Coding("gzip")
BODY = b"a" * 2000
# 2026-03-01 12:00:00 UTC.
NOON = 1772366400


def sent(answer: Answer, *, method: str = "GET", **headers: str) -> falcon.testing.Result:
    class Path:
        def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
            send(req, resp, answer, "public, max-age=7")

        on_head = on_get

    app = falcon.App()
    app.add_route("/", Path())
    return falcon.testing.TestClient(app).simulate_request(
        method, "/", headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


@pytest.mark.parametrize(
    ("header", "listed"),
    [
        ('"abc"', True),
        ('W/"abc"', True),
        ('"x","abc" , W/"y"', True),
        ("abc", False),
        ('"ab"', False),
        ('"abc-gzip"', False),
        ('"x, abc"', False),
        ('"*"', False),
        # Malformed lists still list what is between quotes.
        ('w/"abc"', True),
        ('"x" "abc"', True),
        ("'abc'", False),
    ],
)
def test_a_header_lists_the_tags_between_its_quotes(header: str, listed: bool) -> None:
    answer = Answer(Validators("abc"), IDENTITY, BODY)
    assert (sent(answer, If_None_Match=header).status_code == 304) is listed


@pytest.mark.parametrize("tags", [None, '"abc-gzip"', "*", " * "])
def test_an_answer_and_its_304_have_the_validators_and_caching_headers(tags: str | None) -> None:
    validators = Validators("abc", as_of=(("markets", 9), ("prices", NOON)), modified=NOON)
    got = sent(Answer(validators, GZIP, BODY, (("X-More", "1"),)), **({"If_None_Match": tags} if tags else {}))
    headers = {
        "etag": '"abc-gzip"',
        "vary": "Accept-Encoding",
        "last-modified": "Sun, 01 Mar 2026 12:00:00 GMT",
        "as-of": f"markets=@9, prices=@{NOON}",
        "cache-control": "public, max-age=7",
    }
    if tags is None:
        headers |= {"content-encoding": "gzip", "content-length": str(len(GZIP.encode(BODY)))}
        headers |= {"content-type": "application/json", "x-more": "1", "accept-ranges": "bytes"}
    body = b"" if tags else GZIP.encode(BODY)
    assert (got.status_code, got.content, dict(got.headers)) == (304 if tags else 200, body, headers)


def test_a_body_that_is_not_encoded_has_no_content_encoding() -> None:
    for answer in (Answer(Validators("abc"), IDENTITY, BODY), Answer(Validators("abc"), GZIP, b"short")):
        assert "content-encoding" not in sent(answer).headers


@pytest.mark.parametrize("tags", ['"abc"', '"abc-zstd"', "", '"*"'])
def test_the_tag_of_another_answer_or_coding_gets_a_200(tags: str) -> None:
    got = sent(Answer(Validators("abc"), GZIP, BODY), If_None_Match=tags)
    assert (got.status_code, got.content) == (200, GZIP.encode(BODY))


@pytest.mark.parametrize(
    ("wanted", "begin", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=5-9", 5, 10),
        ("bytes=1990-", 1990, 2000),
        ("bytes=1990-5000", 1990, 2000),
        ("bytes=-10", 1990, 2000),
        ("bytes=-5000", 0, 2000),
    ],
)
def test_a_range_of_bytes_is_a_206_that_says_where_it_is(wanted: str, begin: int, end: int) -> None:
    body = bytes(second % 251 for second in range(2000))
    got = sent(Answer(Validators("abc"), IDENTITY, body), Range=wanted)
    assert (got.status_code, got.content) == (206, body[begin:end])
    assert got.headers["content-range"] == f"bytes {begin}-{end - 1}/2000"
    assert (got.headers["etag"], got.headers["accept-ranges"]) == ('"abc"', "bytes")


@pytest.mark.parametrize(
    "wanted",
    ["bytes=5-4", "bytes=2001-2000", "bytes=-", "bytes=0-1,5-6", "lines=0-1", "bytes=" + "9" * 5000 + "-"],
)
def test_what_is_no_range_and_several_are_ignored(wanted: str) -> None:
    got = sent(Answer(Validators("abc"), IDENTITY, BODY), Range=wanted)
    assert (got.status_code, got.content) == (200, BODY)
    assert "content-range" not in got.headers


@pytest.mark.parametrize("wanted", ["bytes=2000-", "bytes=2000-2000", "bytes=-0"])
def test_a_range_after_the_body_is_a_416_that_says_how_long_it_is(wanted: str) -> None:
    got = sent(Answer(Validators("abc"), GZIP, BODY), Range=wanted)
    assert (got.status_code, got.headers["content-range"]) == (416, f"bytes */{len(GZIP.encode(BODY))}")
    assert "content-encoding" not in got.headers


def test_a_head_with_a_range_tells_of_the_whole_answer() -> None:
    got = sent(Answer(Validators("abc"), IDENTITY, BODY), method="HEAD", Range="bytes=0-9")
    assert (got.status_code, got.content, got.headers["content-length"]) == (200, b"", "2000")
    assert "content-range" not in got.headers
    assert got.headers["accept-ranges"] == "bytes"


def test_a_range_of_another_answer_is_the_whole_of_this_one() -> None:
    answer = Answer(Validators("abc"), IDENTITY, BODY)
    assert sent(answer, Range="bytes=0-9", If_Range='"abc"').status_code == 206
    assert sent(answer, Range="bytes=0-9", If_Range='"old"').status_code == 200
    assert sent(answer, Range="bytes=0-9", If_None_Match='"abc"').status_code == 304


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"If-Match": '"x", "abc"'}, 200),
        ({"If-Match": "*"}, 200),
        ({"If-Match": '"old"'}, 412),
        ({"If-Match": ""}, 412),
        # Its comparison is strong (RFC 9110, 13.1.1).
        ({"If-Match": 'W/"abc"'}, 412),
        ({"If-Unmodified-Since": "Sun, 01 Mar 2026 12:00:00 GMT"}, 200),
        ({"If-Unmodified-Since": "Sun, 01 Mar 2026 11:59:59 GMT"}, 412),
        ({"If-Unmodified-Since": "yesterday"}, 200),
        # If-Match comes first, and then the others.
        ({"If-Match": '"abc"', "If-Unmodified-Since": "Sun, 01 Mar 2026 11:59:59 GMT"}, 200),
        ({"If-Match": '"old"', "If-None-Match": '"abc"'}, 412),
        ({"If-Match": '"abc"', "If-None-Match": '"abc"'}, 304),
        ({"If-Match": '"abc"', "Range": "bytes=0-9"}, 206),
    ],
)
def test_a_request_for_another_version_is_a_412(headers: dict[str, str], status: int) -> None:
    answer = Answer(Validators("abc", modified=NOON), IDENTITY, BODY)
    assert sent(answer, **headers).status_code == status


def test_an_answer_without_a_date_is_never_too_new() -> None:
    headers = {"If-Unmodified-Since": "Sun, 01 Mar 2026 11:59:59 GMT"}
    assert sent(Answer(Validators("abc"), IDENTITY, BODY), **headers).status_code == 200
