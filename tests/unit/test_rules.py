"""Code cites rules by number, and the map of the code has them all."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAP = ROOT / "analytics_service" / "README.md"
FOLDERS = ("analytics_service", "jobs", "sql", "tests")
_NUMBER = r"\d+\.\d+"
_CITATION = re.compile(rf"\brules? ({_NUMBER}(?:(?:, | and |, and | to ){_NUMBER})*)")
_PART = re.compile(rf"({_NUMBER})(?: to ({_NUMBER}))?")
# Texts that are not in the repository. A citation may be broken over two lines, of comments too.
_ELSEWHERE = re.compile(r"\bdecisions\b|interface section")


def defined(text: str) -> list[str]:
    """The numbers of the rules that the map defines, in its order."""
    return re.findall(rf"^\*\*({_NUMBER})\*\* ", text, re.MULTILINE)


def cited(text: str) -> Iterator[str]:
    """The numbers of the rules that a file cites; a range stands for all of its numbers."""
    for citation in _CITATION.findall(flat(text)):
        for first, last in _PART.findall(citation):
            section, number = map(int, first.split("."))
            to_section, to_number = map(int, (last or first).split("."))
            assert (section, number) <= (to_section, to_number), f"a range over sections or backwards: {citation}"
            assert section == to_section, f"a range over sections or backwards: {citation}"
            yield from (f"{section}.{one}" for one in range(number, to_number + 1))


def flat(text: str) -> str:
    """A file's text in one line, without the marks of comments."""
    return " ".join(line.strip().lstrip("#-").strip() for line in text.splitlines())


def files() -> list[Path]:
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))]
    return [path for path in found if path.suffix in (".py", ".sql", ".md") and path != Path(__file__)]


def test_every_cited_rule_is_in_the_map() -> None:
    known = {*defined(MAP.read_text("utf-8"))}
    unknown = {
        f"{path.relative_to(ROOT)} cites {number}"
        for path in files()
        for number in cited(path.read_text("utf-8"))
        if number not in known
    }
    assert not unknown


def test_the_rules_of_each_section_are_numbered_from_one_without_gaps() -> None:
    numbers = [tuple(map(int, number.split("."))) for number in defined(MAP.read_text("utf-8"))]
    sections: dict[int, list[int]] = {}
    for section, number in numbers:
        sections.setdefault(section, []).append(number)
    assert [*sections] == list(range(1, len(sections) + 1))
    assert all(rules == list(range(1, len(rules) + 1)) for rules in sections.values()), sections


def test_no_file_cites_a_text_that_is_not_in_the_repository() -> None:
    assert [path for path in files() if _ELSEWHERE.search(flat(path.read_text("utf-8")))] == []


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("The last observation (rule 2.6).", ["2.6"]),
        ("(rules 2.1 to 2.3 and 2.11)", ["2.1", "2.2", "2.3", "2.11"]),
        ("(rules 1.1, 3.2, and 7.1)", ["1.1", "3.2", "7.1"]),
        ("# as in (rules 3.2\n    # and 3.3)", ["3.2", "3.3"]),
        ("-- rule\n-- 2.12", ["2.12"]),
        ("version 2.6", []),
    ],
)
def test_citations_are_found_in_all_their_forms(text: str, numbers: list[str]) -> None:
    assert list(cited(text)) == numbers


def test_a_rule_that_is_defined_twice_or_left_out_breaks_the_numbering() -> None:
    assert defined("**1.1** One.\n**1.1** Again.\nSee **1.2**\n**2.1** Two.") == ["1.1", "1.1", "2.1"]
