"""Headers of answers, and when a 304 is sent."""

import gzip

import falcon
import falcon.testing
import pytest

from analytics_service.http.answer import Answer, Validators, send

BODY = b"a" * 2000
# 2026-03-01 12:00:00 UTC.
NOON = 1772366400


def sent(answer: Answer, **headers: str) -> falcon.testing.Result:
    class Path:
        def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
            send(req, resp, answer, "public, max-age=7")

    app = falcon.App()
    app.add_route("/", Path())
    return falcon.testing.TestClient(app).simulate_get(
        "/", headers={name.replace("_", "-"): value for name, value in headers.items()}
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
    assert (sent(Answer(Validators("abc"), BODY), If_None_Match=header).status_code == 304) is listed


@pytest.mark.parametrize("tags", [None, '"abc-gzip"', "*", " * "])
def test_an_answer_and_its_304_have_the_validators_and_caching_headers(tags: str | None) -> None:
    answer = Answer(Validators("abc", as_of={"prices": NOON, "markets": 9}, modified=NOON), BODY, (("X-More", "1"),))
    got = sent(answer, Accept_Encoding="gzip", **({"If_None_Match": tags} if tags else {}))
    headers = {
        "etag": '"abc-gzip"',
        "vary": "Accept-Encoding",
        "last-modified": "Sun, 01 Mar 2026 12:00:00 GMT",
        "as-of": f"markets=@9, prices=@{NOON}",
        "cache-control": "public, max-age=7",
    }
    if tags is None:
        headers |= {"content-encoding": "gzip", "content-length": str(len(answer.gzip))}
        headers |= {"content-type": "application/json", "x-more": "1"}
    body = b"" if tags else answer.gzip
    assert (got.status_code, got.content, dict(got.headers)) == (304 if tags else 200, body, headers)


@pytest.mark.parametrize(
    ("body", "is_packed", "accepted", "tag", "encoded"),
    [
        (b"a" * 1024, False, "gzip", '"abc-gzip"', True),
        # Too short to gain from a coding.
        (b"a" * 1023, False, "gzip", '"abc"', False),
        (b"a" * 1024, False, "br", '"abc"', False),
        (b"a" * 1024, True, "gzip", '"abc"', False),
    ],
)
def test_a_body_that_gains_from_it_is_compressed_where_that_is_allowed(
    body: bytes, is_packed: bool, accepted: str, tag: str, encoded: bool
) -> None:
    got = sent(Answer(Validators("abc"), body, is_packed=is_packed), Accept_Encoding=accepted)
    assert (got.headers["etag"], got.headers.get("content-encoding")) == (tag, "gzip" if encoded else None)
    assert (gzip.decompress(got.content) if encoded else got.content) == body
    assert not encoded or len(got.content) < len(body) / 5


@pytest.mark.parametrize("tags", ['"abc"', '"abc-br"', "", '"*"'])
def test_the_tag_of_another_answer_or_coding_gets_a_200(tags: str) -> None:
    answer = Answer(Validators("abc"), BODY)
    got = sent(answer, Accept_Encoding="gzip", If_None_Match=tags)
    assert (got.status_code, got.content) == (200, answer.gzip)
