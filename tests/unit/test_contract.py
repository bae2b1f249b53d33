"""The contract with clients: the OpenAPI document as it is served, which openapi.txt beside this file outlines."""

from difflib import unified_diff

from tests.golden import FILE, served


def test_the_document_is_the_one_that_was_reviewed() -> None:
    before, now = FILE.read_text("utf-8").splitlines(), served().splitlines()
    changes = "\n".join([*unified_diff(before, now, "reviewed", "served", lineterm="")][:60])
    assert not changes, f"If this is meant, `python -m tests.golden` writes it:\n{changes}"
