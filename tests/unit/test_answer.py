"""Headers of answers, and when a 304 is sent."""

import shutil
import subprocess
import sys
from pathlib import Path

import falcon
import falcon.testing
import pytest

from analytics_service.http.answer import Answer, Validators, lists_tag, send, tag_of, tag_of_body
from analytics_service.http.coding import IDENTITY, Coding

GZIP = Coding("gzip")
ROOT = Path(__file__).parents[2]
BODY = b"a" * 2000
# 2026-03-01 12:00:00 UTC.
NOON = 1772366400


@pytest.mark.parametrize(
    ("header", "listed"),
    [
        ('"abc"', True),
        ('W/"abc"', True),
        ('"x", "abc"', True),
        ('"x","abc" , W/"y"', True),
        (None, False),
        ("", False),
        ("abc", False),
        ('"ab"', False),
        ('"abc-gzip"', False),
        ('"x, abc"', False),
        ('"xabc"', False),
        ("*", False),
        ('"*"', False),
        # Malformed lists still list what is between quotes.
        ('w/"abc"', True),
        ('"x" "abc"', True),
        (',, "abc",', True),
        ("'abc'", False),
    ],
)
def test_a_header_lists_the_tags_between_its_quotes(header: str | None, listed: bool) -> None:
    assert lists_tag(header, '"abc"') is listed


def sent(answer: Answer, **headers: str) -> falcon.testing.Result:
    """The response to a request with these headers."""

    class Path:
        def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
            send(req, resp, answer, "public, max-age=7")

    app = falcon.App()
    app.add_route("/", Path())
    return falcon.testing.TestClient(app).simulate_get(
        "/", headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def test_a_200_has_the_validators_and_caching_headers() -> None:
    got = sent(Answer(Validators("abc", at=NOON), GZIP, BODY, (("X-More", "1"),)))
    assert got.status_code == 200
    assert got.content == GZIP.encode(BODY)
    assert dict(got.headers) == {
        "etag": '"abc-gzip"',
        "vary": "Accept-Encoding",
        "last-modified": "Sun, 01 Mar 2026 12:00:00 GMT",
        "cache-control": "public, max-age=7",
        "content-encoding": "gzip",
        "content-length": str(len(GZIP.encode(BODY))),
        "content-type": "application/json",
        "x-more": "1",
    }


def test_a_body_that_is_not_encoded_has_no_content_encoding() -> None:
    for answer in (Answer(Validators("abc"), IDENTITY, BODY), Answer(Validators("abc"), GZIP, b"short")):
        assert "content-encoding" not in sent(answer).headers


@pytest.mark.parametrize("known", ['"abc-gzip"', 'W/"abc-gzip"', '"x", "abc-gzip"', "*", " * "])
def test_a_304_has_the_validators_and_caching_headers_and_no_body(known: str) -> None:
    got = sent(Answer(Validators("abc", at=NOON), GZIP, BODY, (("X-More", "1"),)), If_None_Match=known)
    assert (got.status_code, got.content) == (304, b"")
    assert dict(got.headers) == {
        "etag": '"abc-gzip"',
        "vary": "Accept-Encoding",
        "last-modified": "Sun, 01 Mar 2026 12:00:00 GMT",
        "cache-control": "public, max-age=7",
    }


@pytest.mark.parametrize("known", ['"abc"', '"abc-zstd"', '"other"', "", "abc-gzip", '"*"'])
def test_the_tag_of_another_answer_or_coding_gets_a_200(known: str) -> None:
    got = sent(Answer(Validators("abc"), GZIP, BODY), If_None_Match=known)
    assert (got.status_code, got.content) == (200, GZIP.encode(BODY))


def test_a_tag_changes_with_each_part_only() -> None:
    parts: list[tuple[object, ...]] = [
        ("/a", 1, None),
        ("/b", 1, None),
        ("/a", 2, None),
        ("/a", 1, "None"),
        ("/a", 1),
        ("/a", (1, None)),
    ]
    assert len({tag_of(one) for one in parts}) == len(parts)
    assert tag_of(("/a", 1, None)) == tag_of(["/a", 1, None])


def test_a_tag_changes_with_the_code_that_renders(tmp_path: Path) -> None:
    """Copies of the service run in their own processes; in some of them a file has one more comment."""

    def tag(**changed: str) -> str:
        root = tmp_path / "-".join(["copy", *changed])
        for part in ("analytics_service", "sql"):
            shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
        for name, suffix in changed.items():
            with next((root / name).rglob(f"*.{suffix}")).open("a") as file:
                file.write("\n-- more\n" if suffix == "sql" else "\n# more\n")
        code = "from analytics_service.http.answer import tag_of; print(tag_of(['x']))"
        done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
        return done.stdout

    tags = [tag(), tag(analytics_service="py"), tag(sql="sql")]
    assert len(set(tags)) == len(tags)


def test_the_tag_of_a_body_changes_with_the_body() -> None:
    assert tag_of_body(b"a") == tag_of_body(b"a") != tag_of_body(b"b")
