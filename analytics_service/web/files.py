"""What the pages consist of, each file at a path that changes with its contents."""

import re
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from pathlib import PurePath

from analytics_service.http.answer import tag_of

ROOT = "/static"
_SCRIPT = re.compile(r'<script type="module" src="{{own}}/([^"]+)"')
_IMPORT = re.compile(r'from "\./([^"]+)"')
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class File:
    """A file as browsers get it."""

    body: bytes
    media: str


@cache
def files() -> dict[tuple[str, str], File]:
    """Every file that pages load, by version and name: our own, which share a version because modules name each other,
    and the charting library."""
    version, own = _own()
    chart_version, charts = _charts()
    return {(version, name): file for name, file in own.items()} | {(chart_version, "plotly.min.js"): charts}


def page(name: str, **facts: str) -> bytes:
    """An HTML page whose `{{name}}` are filled in with facts, and with the paths of `own` files and of `charts`.

    It tells browsers of all modules at once, so that they need not find out one after the other.
    """
    found = (_folder() / f"{name}.html").read_text("utf-8")
    preloads = [f'  <link rel="modulepreload" href="{{{{own}}}}/{module}">\n' for module in _modules(found)]
    found = found.replace("</head>", f"{''.join(preloads)}</head>")
    paths = {"own": f"{ROOT}/{_own()[0]}", "charts": f"{ROOT}/{_charts()[0]}/plotly.min.js"}
    for fact, value in (paths | facts).items():
        found = found.replace(f"{{{{{fact}}}}}", escape(value))
    return found.encode()


def _modules(html: str) -> list[str]:
    """The modules that those of a page import, and those that these import."""
    found = [*_SCRIPT.findall(html)]
    for module in found:
        imported = _IMPORT.findall(_own()[1][module].body.decode())
        found += [name for name in dict.fromkeys(imported) if name not in found]
    return found


@cache
def _own() -> tuple[str, dict[str, File]]:
    """The version of our own files, and each of them by name."""
    there = sorted((one for one in _folder().iterdir() if PurePath(one.name).suffix in TYPES), key=lambda one: one.name)
    found = {one.name: File(one.read_bytes(), TYPES[PurePath(one.name).suffix]) for one in there}
    return tag_of(b"".join(file.body for file in found.values())), found


@cache
def _charts() -> tuple[str, File]:
    """The version of the charting library, and its file as the Python package has it."""
    body = (resources.files("plotly") / "package_data" / "plotly.min.js").read_bytes()
    return tag_of(body), File(body, TYPES[".js"])


def _folder() -> resources.abc.Traversable:
    return resources.files("analytics_service.web") / "static"
