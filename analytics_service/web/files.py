"""What the pages consist of, each file at a path that changes with its contents."""

import re
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from pathlib import PurePath

from analytics_service.http.answer import tag_of

ROOT = "/static"
_CHARTS = "plotly.min.js"
_SCRIPT = re.compile(r'<script type="module" src="{{own}}/([^"]+)"')
_IMPORT = re.compile(r'from "\./([^"]+)"')
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class File:
    """A file as browsers get it. Its version is part of its path."""

    version: str
    body: bytes
    media: str


@cache
def files() -> dict[str, File]:
    """Every file that pages load, by name: our own, which share a version because modules name each other, and the
    charting library."""
    return _own() | {_CHARTS: _charts()}


def page(name: str, **facts: str) -> bytes:
    """An HTML page whose `{{name}}` are filled in with facts, and with the paths of `own` files and of `charts`.

    It tells browsers of all modules at once, so that they need not find out one after the other.
    """
    found = (_folder() / f"{name}.html").read_text("utf-8")
    preloads = [f'  <link rel="modulepreload" href="{{{{own}}}}/{module}">\n' for module in _modules(found)]
    found = found.replace("</head>", f"{''.join(preloads)}</head>")
    (own,) = {file.version for file in _own().values()}
    paths = {"own": f"{ROOT}/{own}", "charts": f"{ROOT}/{_charts().version}/{_CHARTS}"}
    for fact, value in (paths | facts).items():
        found = found.replace(f"{{{{{fact}}}}}", escape(value))
    return found.encode()


def _modules(html: str) -> list[str]:
    """The modules that those of a page import, and those that these import."""
    found = [*_SCRIPT.findall(html)]
    for module in found:
        imported = _IMPORT.findall(_own()[module].body.decode())
        found += [name for name in dict.fromkeys(imported) if name not in found]
    return found


@cache
def _own() -> dict[str, File]:
    """Each of our own files, by name."""
    there = sorted((one for one in _folder().iterdir() if PurePath(one.name).suffix in TYPES), key=lambda one: one.name)
    bodies = {one.name: one.read_bytes() for one in there}
    version = tag_of(b"".join(bodies.values()))
    return {name: File(version, body, TYPES[PurePath(name).suffix]) for name, body in bodies.items()}


@cache
def _charts() -> File:
    """The charting library, as the Python package has it."""
    body = (resources.files("plotly") / "package_data" / _CHARTS).read_bytes()
    return File(tag_of(body), body, TYPES[".js"])


def _folder() -> resources.abc.Traversable:
    return resources.files("analytics_service.web") / "static"
