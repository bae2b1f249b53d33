"""The files of the web pages, each at a path that changes with its contents."""

import re
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from pathlib import PurePath

from analytics_service.http.answer import etag_of

# Relative to a page, so that a proxy may serve it below any path.
ROOT = "static"
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
    """A file for browsers. Its version is part of its path."""

    version: str
    body: bytes
    media: str


@cache
def files() -> dict[str, File]:
    """Every file that web pages load, by name: our own files, which share a version because modules import each other,
    and the charting library."""
    return _own() | {_CHARTS: _charts()}


def page(**facts: str) -> bytes:
    """The HTML page, with facts, the paths of `own` files and of `charts` in place of each `{{name}}`.

    It lists all modules for preloading, so that browsers need not discover them one by one.
    """
    html = (_folder() / "index.html").read_text("utf-8")
    preloads = [f'  <link rel="modulepreload" href="{{{{own}}}}/{module}">\n' for module in _modules(html)]
    html = html.replace("</head>", f"{''.join(preloads)}</head>")
    (own,) = {file.version for file in _own().values()}
    paths = {"own": f"{ROOT}/{own}", "charts": f"{ROOT}/{_charts().version}/{_CHARTS}"}
    for fact, value in (paths | facts).items():
        html = html.replace(f"{{{{{fact}}}}}", escape(value))
    return html.encode()


def _modules(html: str) -> list[str]:
    """The modules that a page loads, and all modules that they import, directly or not."""
    modules = [*_SCRIPT.findall(html)]
    for module in modules:
        imported = _IMPORT.findall(_own()[module].body.decode())
        modules += [name for name in dict.fromkeys(imported) if name not in modules]
    return modules


@cache
def _own() -> dict[str, File]:
    listed = (file for file in _folder().iterdir() if PurePath(file.name).suffix in TYPES)
    bodies = {file.name: file.read_bytes() for file in sorted(listed, key=lambda file: file.name)}
    version = etag_of(b"".join(bodies.values()))
    return {name: File(version, body, TYPES[PurePath(name).suffix]) for name, body in bodies.items()}


@cache
def _charts() -> File:
    body = (resources.files("plotly") / "package_data" / _CHARTS).read_bytes()
    return File(etag_of(body), body, TYPES[".js"])


def _folder() -> resources.abc.Traversable:
    return resources.files("analytics_service.web") / "static"
