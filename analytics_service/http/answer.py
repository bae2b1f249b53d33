"""A 200 and what caches are told of it (RFC 9110, 9111); 304 for callers that have it already."""

import re
from base64 import urlsafe_b64encode
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import falcon

from analytics_service.http.coding import Coding

Headers = tuple[tuple[str, str], ...]
NO_STORE = "no-store"
_TAG = re.compile(r'"[^"]*"')


@dataclass(frozen=True, slots=True)
class Label:
    """What caches are told of an answer in any coding; known before it is rendered.

    `tag` and `state` change when the answer may have. Of snapshots shown: `at` is the newest one's instant, `due` that
    of the next one (0 when none is due), unix seconds; `closed` when that will change nothing.
    """

    tag: str
    state: Hashable = None
    at: int | None = None
    due: int = 0
    closed: bool = False

    def etag(self, coding: Coding) -> str:
        """The strong ETag of the answer in a coding."""
        return f'"{self.tag}{coding.suffix}"'

    def headers(self, coding: Coding) -> Headers:
        """The headers that a 304 has too, all but Cache-Control."""
        headers = (("ETag", self.etag(coding)), ("Vary", "Accept-Encoding"))
        seen = () if self.at is None else (("Last-Modified", _http_date(self.at)),)
        return headers + seen


class Answer:
    """A body in one coding with its headers, made once; without a body, for callers that have it already."""

    __slots__ = ("body", "content", "etag", "headers", "label")

    def __init__(self, label: Label, coding: Coding, body: bytes = b"", content: Headers = ()) -> None:
        """`body` as it is; `content` are headers that only a 200 has."""
        self.label = label
        self.etag = label.etag(coding)
        self.headers = label.headers(coding)
        self.body = coding.encode(body)
        self.content = content if self.body is body else (*content, ("Content-Encoding", coding.name))


def send(req: falcon.Request, resp: falcon.Response, answer: Answer, cache_control: str) -> None:
    """Answer 200, or 304 when If-None-Match names what would be sent."""
    resp.set_headers(answer.headers)
    resp.set_header("Cache-Control", cache_control)
    known = req.get_header("If-None-Match")
    if known is not None and (known.strip() == "*" or names(known, answer.etag)):
        resp.status = falcon.HTTP_304
    else:
        resp.set_headers(answer.content)
        resp.data = answer.body


def names(if_none_match: str | None, etag: str) -> bool:
    """Whether the header lists a tag, weak or not. `*` lists none: it holds for whatever there is."""
    return if_none_match is not None and etag in _TAG.findall(if_none_match)


def tag_of(parts: Iterable[object]) -> str:
    """A tag that changes with any of the parts' representations, and with the code that renders."""
    return _digest(repr((_CODE, *parts)).encode())


def tag_of_body(body: bytes) -> str:
    """A tag that changes with the body."""
    return _digest(body)


def _digest(content: bytes) -> str:
    return urlsafe_b64encode(blake2b(content, digest_size=15).digest()).decode()


def _code() -> str:
    """Changes with the code and the SQL. A version would not do: fixes and local changes keep it."""
    root = Path(__file__).parents[2]
    files = (path for part in ("analytics_service", "sql") for path in sorted((root / part).rglob("*.*")))
    return _digest(b"\0".join(path.read_bytes() for path in files if path.suffix in (".py", ".sql")))


# Read once, when a process starts, and not while someone waits.
_CODE = _code()


def _http_date(second: int) -> str:
    return falcon.dt_to_http(datetime.fromtimestamp(second, UTC))
