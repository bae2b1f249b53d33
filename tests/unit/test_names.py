"""Names: what comments and documents name exists, each name means one thing, and given-up words stay away."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path

from analytics_service.config.settings import table

ROOT = Path(__file__).parents[2]
_WORD = re.compile(r"[A-Za-z_]\w*")
_SPAN = re.compile(r"`([^`\n]+)`")
_CAPITALS = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
_FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Python's tokenizer takes seconds for all files.
_COMMENT_OR_STRING = re.compile(
    r"""#[^\n]*|\"{3}(?:\\.|[^\\])*?\"{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)
# A view or a column in the dictionary, which is made from the store.
_TABLE_ROW = re.compile(r"^(\w+) \|", re.MULTILINE)
# A stop of a walk through the code: a file, and a function or class of it, perhaps with a method.
_STOP = re.compile(r"^([\w/]+\.py) +([A-Za-z_][\w.]*)", re.MULTILINE)
# Names that only libraries and other programs have.
ELSEWHERE = {
    "remote_servers": "ClickHouse", "internal_replication": "ClickHouse", "REMOTE": "ClickHouse",
    "sqlite": "ClickHouse", "toStartOfWeek": "ClickHouse", "GUNICORN_CMD_ARGS": "gunicorn", "SERVER_PORT": "WSGI",
    "to_json": "pandas", "__index_level_0__": "pandas", "con": "ibis, in its documentation",
    "EX_CONFIG": "sysexits.h", "market_chart": "the API of CoinGecko",
}  # fmt: skip
# Has ClickHouse's names of errors, beside their numbers.
_ERROR_CODES = "analytics_service/clickhouse/errors.py"
# Modules whose folder says which side of a topic they hold, and modules that every source or package has.
_TOPICS = "analytics assets docs events history ledger markets portfolio_history positions prices ptoken rates sums"
_PARTS = "__init__ base client errors files recompute registry remove source state"
# Words that the code gave up for the field's: dataset, 15min, anomaly, canonical id, origin, rejection, and so on.
GONE = (
    "family families quarter quarters doubt doubts misfit spelling portion bringer admission disagreeing retake beating"
    " judging falling left_out left_behind in_turn collect_again seconds_left line_of steps_below brought_by"
)
# Tokens of other libraries with such a word.
KEPT = {"AddressFamily": "socket", "sock.family": "socket", "GaugeMetricFamily": "prometheus_client"}


def split(path: Path) -> tuple[str, str]:
    """The code of a file, and its comments, docstrings or sentences."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        return "\n".join(_FENCE.findall(text)), _FENCE.sub("", text)
    if path.suffix == ".sql":
        return re.sub(r"--.*", "", text), "\n".join(re.findall(r"--.*", text))
    if path.suffix != ".py":
        return text, ""
    lone = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr)]
    docstrings = {node.lineno: str(node.value) for node in lone if isinstance(node, ast.Constant)}
    comments = []

    def code(match: re.Match[str]) -> str:
        if match[0].startswith("#"):
            comments.append(match[0])
            return ""
        return "" if text.count("\n", 0, match.start()) + 1 in docstrings else match[0]

    return _COMMENT_OR_STRING.sub(code, text), "\n".join([*docstrings.values(), *comments])


@cache
def texts() -> Mapping[str, tuple[str, str]]:
    """The code and the prose of each file, by path."""
    paths = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "setup.cfg", "pyproject.toml", ".ci/run")]
    paths += [path for folder in ("analytics_service", "jobs", "sql", "tests") for path in (ROOT / folder).rglob("*.*")]
    kept = [path for path in paths if path.suffix not in (".png", ".pyc", ".txt") and path != Path(__file__)]
    return {str(path.relative_to(ROOT)): split(path) for path in kept if path.is_file()}


def named(prose: str) -> Iterator[str]:
    """The names in a text: code spans that are one, words with an underscore in other spans, and constants."""
    for span in _SPAN.findall(prose):
        is_name = re.fullmatch(r"[\w.]+(\(\))?", span)
        yield from (word for word in _WORD.findall(span) if is_name or "_" in word.strip("_"))
    yield from _CAPITALS.findall(prose)


def missing_names(documents: Mapping[str, tuple[str, str]]) -> Set[str]:
    """The names in documents that no code has. The product's prose may not name what tests alone have."""
    known, tested = {*ELSEWHERE, *(row.variable for row in table())}, set[str]()
    for path, (code, prose) in texts().items():
        (tested if path.startswith("tests/") else known).update(_WORD.findall(f"{path} {code}"))
        known.update(_TABLE_ROW.findall(prose if path == "sql/DICTIONARY.md" else ""))
    return {
        f"{path} {name}"
        for path, (_, prose) in documents.items()
        for name in named("" if path == _ERROR_CODES else prose)
        if name not in (known | tested if path.startswith("tests/") or path.endswith(".md") else known)
    }


def test_names_in_comments_and_documents_exist() -> None:
    assert missing_names(texts()) == set()
    assert len(missing_names({"jobs/planted.py": ("", "As `no_such_name`, but NO_SUCH_NAME.")})) == 2


def test_the_stops_of_walks_are_in_their_files() -> None:
    walks = [stop for path, (code, _) in texts().items() if path.endswith("README.md") for stop in _STOP.findall(code)]
    known = {path.removeprefix("analytics_service/"): set(_WORD.findall(code)) for path, (code, _) in texts().items()}
    assert len(walks) > 30
    assert [(path, name) for path, name in walks if not known.get(path, set()) >= {*name.split(".")}] == []


def test_a_name_of_a_module_or_class_is_used_once() -> None:
    used = defaultdict(list)
    for path, (code, _) in texts().items():
        if path.endswith(".py") and not path.startswith(("tests/", "analytics_service/cli/examples/")):
            for name in (Path(path).stem, *re.findall(r"\bclass [A-Z_]\w+", code)):
                used[name].append(path)
    assert {name for name, paths in used.items() if len(paths) > 1} == {*_TOPICS.split(), *_PARTS.split()}


def test_words_that_were_given_up_stay_away() -> None:
    names = {row.variable for row in table()}
    for path, (code, _) in texts().items():
        if path.endswith((".py", ".sql")) and not path.startswith("tests/"):
            names |= set(_WORD.findall(re.sub(rf"""(["']).*?\1|{"|".join(map(re.escape, KEPT))}""", "", code)))
    apart = {name: f"_{re.sub('(?<=[a-z])(?=[A-Z])', '_', name).lower()}_" for name in names}
    assert {name for name, words in apart.items() if any(f"_{word}_" in words for word in GONE.split())} == set()
