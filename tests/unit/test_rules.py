"""Code cites rules by number; the READMEs of the rooms have them."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(ROOT.glob("analytics_service/*/README.md"))
FOLDERS = ("analytics_service", "jobs", "sql", "tests")
_NUMBER = r"\d+\.\d+"
_CITATION = re.compile(rf"\brules? ({_NUMBER}(?:(?:, | and |, and | to ){_NUMBER})*)")
_PART = re.compile(rf"({_NUMBER})(?: to ({_NUMBER}))?")
# Texts that are not in the repository. A citation may be broken over two lines, of comments too.
_ELSEWHERE = re.compile(r"\bdecisions\b|interface section")


def defined(text: str) -> list[str]:
    """The numbers of the rules that a text defines, in its order. A rule may have a name after its number."""
    return re.findall(rf"^\*\*({_NUMBER})(?: \([^)]+\))?\*\* ", text, re.MULTILINE)


def cited(text: str) -> Iterator[str]:
    """The numbers of the rules that a file cites; a range stands for all of its numbers."""
    for citation in _CITATION.findall(flat(text)):
        for first, last in _PART.findall(citation):
            section, number = map(int, first.split("."))
            to_section, to_number = map(int, (last or first).split("."))
            assert (section, number) <= (to_section, to_number), f"a range over sections or backwards: {citation}"
            assert section == to_section, f"a range over sections or backwards: {citation}"
            yield from (f"{section}.{rule}" for rule in range(number, to_number + 1))


def rules() -> list[tuple[int, int]]:
    """The numbers of all rules, in their order; a rule that stands in two documents is there twice."""
    numbers = [number for document in DOCUMENTS for number in defined(document.read_text("utf-8"))]
    return sorted((int(section), int(rule)) for section, rule in (number.split(".") for number in numbers))


def flat(text: str) -> str:
    """A file's text in one line, without the marks of comments."""
    return " ".join(line.strip().lstrip("#-/*").strip() for line in text.splitlines())


def files() -> list[Path]:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))]
    return [path for path in paths if path.suffix in (".py", ".sql", ".md", ".js", ".xml") and path != Path(__file__)]


def test_every_cited_rule_is_in_a_document() -> None:
    numbers = {f"{section}.{rule}" for section, rule in rules()}
    unknown = {
        f"{path.relative_to(ROOT)} cites {number}"
        for path in files()
        for number in cited(path.read_text("utf-8"))
        if number not in numbers
    }
    assert not unknown


def test_the_rules_of_each_section_are_numbered_from_one_without_gaps() -> None:
    sections: dict[int, list[int]] = {}
    for section, number in rules():
        sections.setdefault(section, []).append(number)
    assert [*sections] == list(range(1, len(sections) + 1))
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in sections.values()), sections


def test_no_file_cites_a_text_that_is_not_in_the_repository() -> None:
    assert [path for path in files() if _ELSEWHERE.search(flat(path.read_text("utf-8")))] == []


def test_a_cited_name_is_the_name_of_the_rule() -> None:
    texts = [document.read_text("utf-8") for document in DOCUMENTS]
    names = dict(
        pair for text in texts for pair in re.findall(rf"^\*\*({_NUMBER}) \(([^)]+)\)\*\* ", text, re.MULTILINE)
    )
    cited_names = {
        (str(path.relative_to(ROOT)), number, name)
        for path in files()
        for number, name in re.findall(rf"[(\[]rule ({_NUMBER}), ([^)\]]+)[)\]]", flat(path.read_text("utf-8")))
    }
    assert {cited for cited in cited_names if names.get(cited[1]) != cited[2]} == set()
