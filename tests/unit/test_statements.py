"""The list of statements is whole: each that writes is in it, each setting, and what each kind does everywhere."""

import re
from pathlib import Path

import analytics_service.store as room
from analytics_service.store.sql import scripts, without_comments
from tests.golden import LAYOUTS

TEXT = (Path(room.__file__).parent / "STATEMENTS.md").read_text("utf-8")
NAMED = {*re.findall(r"`(\w+)`", TEXT)}
KINDS = dict(zip(*[iter(re.split(r"^### (.+)$", TEXT, flags=re.MULTILINE)[1:])] * 2, strict=True))
SAID = ["One server", "Shards", "Replicas", "Replicated database", "Cloud", "Bound", "Repeat", "Run", "Source"]


def test_every_setting_of_a_layout_is_explained() -> None:
    layouts = LAYOUTS.values()
    names = {name for layout in layouts for name in (*layout.settings, *layout.timeouts)}
    answering = " ".join(layout.on_all_servers("one")["answering"] for layout in layouts)
    assert names | {*re.findall(r"(\w+) =", answering)} <= NAMED


def test_every_query_that_writes_is_of_a_kind_and_no_other_is_named() -> None:
    texts = {script.stem: without_comments(script.read_text("utf-8")) for script in scripts("queries")}
    writing = {name for name, text in texts.items() if re.match(r"\s*(ALTER|CREATE|DELETE|DROP|INSERT)\b", text)}
    assert NAMED & {*texts} == writing | {"backup_rows"}


def test_modules_that_are_named_are_there() -> None:
    package = Path(room.__file__).parents[1]
    assert {*re.findall(r"`(\w+\.py)`", TEXT)} <= {path.name for path in package.rglob("*.py")}


def test_of_each_kind_everything_is_said_in_the_same_order() -> None:
    said = {kind: re.findall(r"^- \*\*(.+?)\*\*: \S", text, re.MULTILINE) for kind, text in KINDS.items()}
    assert said == dict.fromkeys(KINDS, SAID)
    assert len(KINDS) == 16


def test_what_was_not_run_is_said_so() -> None:
    """As long as no test has a replicated server."""
    for kind, text in KINDS.items():
        assert "not run on replicas" in text[text.index("**Run**") :], kind
