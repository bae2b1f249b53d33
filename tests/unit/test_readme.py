"""The documents: short enough to read, with links that lead somewhere."""

import re
from configparser import ConfigParser
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCUMENTS = [README, *sorted(ROOT.glob("analytics_service/**/README.md")), *sorted(ROOT.glob("sql/README.md"))]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
# Bytes of all documents together, and of the picture.
_MOST_TEXT, _MOST_PICTURE = 84_000, 200_000


def prose(path: Path) -> str:
    """The text of a document without its blocks of code."""
    return _FENCE.sub("", path.read_text("utf-8"))


def anchors(path: Path) -> set[str]:
    """The names by which headings of a document are linked."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_has_two_screens() -> None:
    lines = README.read_text("utf-8").splitlines()
    assert len(lines) <= 200
    assert [line for line in lines if len(line) > 120] == []


def test_it_begins_with_the_picture_the_command_that_starts_and_the_one_that_tests() -> None:
    text = README.read_text("utf-8")
    start, test = [block.strip() for _, block in _FENCE.findall(text)][:2]
    assert start.endswith("analytics-service up")
    assert test.endswith("-m pytest")
    assert text.index("![") < text.index(start)


def test_the_picture_is_small_enough_to_load_at_once() -> None:
    (picture,) = re.findall(r"!\[.+\]\((.+\.png)\)", README.read_text("utf-8"))
    assert (ROOT / picture).stat().st_size <= _MOST_PICTURE


def test_all_documents_together_are_read_in_an_afternoon() -> None:
    assert sum(path.stat().st_size for path in DOCUMENTS) <= _MOST_TEXT


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / "CONTRIBUTING.md"], ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(path: Path) -> None:
    for link in _LINK.findall(prose(path)):
        if link.startswith(("http:", "https:")):
            continue
        file, _, anchor = unquote(link).partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_versions_of_python_are_those_of_the_package() -> None:
    package = ConfigParser()
    package.read(ROOT / "setup.cfg")
    classifiers = re.findall(r"Python :: (3\.\d+)", package["metadata"]["classifiers"])
    (named,) = re.findall(r"tested on (.+)\.\n", README.read_text("utf-8"))
    assert named.split(" and ") == classifiers
    assert package["options"]["python_requires"] == f">={classifiers[0]}"
