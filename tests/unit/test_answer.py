"""What caches are told of an answer, and when 304 says it all."""

import shutil
import subprocess
import sys
from pathlib import Path

import falcon
import falcon.testing
import pytest

from analytics_service.http.answer import Answer, Label, names, send, tag_of, tag_of_body
from analytics_service.http.coding import IDENTITY, Coding

GZIP = Coding("gzip")
ROOT = Path(__file__).parents[2]
BODY = b"a" * 2000
# 2026-03-01 12:00:00 UTC.
NOON = 1772366400


@pytest.mark.parametrize(
    ("header", "named"),
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
    ],
)
def test_tags_are_compared_by_what_is_between_the_quotes(header: str | None, named: bool) -> None:
    assert names(header, '"abc"') is named


def sent(answer: Answer, **headers: str) -> falcon.testing.Result:
    """The answer as a caller gets it."""

    class Path:
        def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
            send(req, resp, answer, "public, max-age=7")

    app = falcon.App()
    app.add_route("/", Path())
    return falcon.testing.TestClient(app).simulate_get(
        "/", headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def test_an_answer_has_all_that_caches_go_by() -> None:
    got = sent(Answer(Label("abc", at=NOON), GZIP, BODY, (("X-More", "1"),)))
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


def test_a_body_that_stays_as_it_is_has_no_content_encoding() -> None:
    for answer in (Answer(Label("abc"), IDENTITY, BODY), Answer(Label("abc"), GZIP, b"short")):
        assert "content-encoding" not in sent(answer).headers


@pytest.mark.parametrize("known", ['"abc-gzip"', 'W/"abc-gzip"', '"x", "abc-gzip"', "*", " * "])
def test_a_caller_that_has_it_gets_304_with_what_caches_go_by_and_no_body(known: str) -> None:
    got = sent(Answer(Label("abc", at=NOON), GZIP, BODY, (("X-More", "1"),)), If_None_Match=known)
    assert (got.status_code, got.content) == (304, b"")
    assert dict(got.headers) == {
        "etag": '"abc-gzip"',
        "vary": "Accept-Encoding",
        "last-modified": "Sun, 01 Mar 2026 12:00:00 GMT",
        "cache-control": "public, max-age=7",
    }


@pytest.mark.parametrize("known", ['"abc"', '"abc-zstd"', '"other"', ""])
def test_a_caller_that_has_another_form_or_another_answer_gets_it(known: str) -> None:
    got = sent(Answer(Label("abc"), GZIP, BODY), If_None_Match=known)
    assert (got.status_code, got.content) == (200, GZIP.encode(BODY))


def test_a_tag_changes_with_each_part_and_with_nothing_else() -> None:
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
    """Two copies of the service in processes of their own; one has a comment more."""

    def tag(**more: str) -> str:
        root = tmp_path / "-".join(["copy", *more])
        for part in ("analytics_service", "sql"):
            shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
        for name, suffix in more.items():
            with next((root / name).rglob(f"*.{suffix}")).open("a") as file:
                file.write("\n-- more\n" if suffix == "sql" else "\n# more\n")
        code = "from analytics_service.http.answer import tag_of; print(tag_of(['x']))"
        done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
        return done.stdout

    tags = [tag(), tag(analytics_service="py"), tag(sql="sql")]
    assert len(set(tags)) == len(tags)


def test_the_tag_of_a_body_changes_with_it() -> None:
    assert tag_of_body(b"a") == tag_of_body(b"a") != tag_of_body(b"b")
