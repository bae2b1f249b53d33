"""Answers: the envelope, validators, caching headers (RFC 9110 and 9111), and sending a 200 or 304."""

import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import falcon
import orjson
from isal import isal_zlib
from xxhash import xxh3_128_digest

from analytics_service.market.instants import from_unix
from analytics_service.market.lazy import cached_attribute

_REFUSED = re.compile(r"\s*q\s*=\s*0(\.0*)?\s*")
# Below this size, compression saves less than the extra header and the caller's decompression cost.
_MIN_SIZE = 1024
_GZIP_FORMAT = 31
# Level 1 compresses a 300 KB history page to a third in 0.6 ms; higher levels take longer and save no more.
_LEVEL = 1
Headers = tuple[tuple[str, str], ...]
NO_STORE = "no-store"
# Headers that web pages of other origins may read, if the response has them.
EXPOSED = (
    *("Allow", "As-Of", "Content-Disposition", "ETag", "History-Begins"),
    *("Last-Modified", "Link", "Retry-After", "X-Request-ID"),
)
# Every response has these. Browsers must not guess another type, load anything for a response, or show it in a frame.
# A web page that needs more has its own policy.
PROTECTIVE = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_PHRASES = {HTTPStatus.REQUEST_URI_TOO_LONG: "URI Too Long"}
_TAG = re.compile(r'"[^"]*"')


@lru_cache(maxsize=256)
def accepts_gzip(accept_encoding: str | None) -> bool:
    """Whether an Accept-Encoding header names gzip, or else *, without q=0 (RFC 9110, 12.5.3)."""
    parts = (part.partition(";") for part in (accept_encoding or "").lower().split(","))
    named = {name.strip(): parameter for name, _, parameter in parts}
    parameter = named.get("gzip", named.get("*"))
    return parameter is not None and not _REFUSED.fullmatch(parameter)


@dataclass(frozen=True, slots=True)
class Validators:
    """The caching properties of an answer in any coding. All instants are unix seconds.

    - `tag`: digest of the body. `state`: changes whenever the body may have changed.
    - `as_of`: instant of each dataset's snapshot. `modified`: the newest of these instants and of their corrections.
    - `due`: when the next snapshot is expected, 0 if never.
    - `closes_at`: from then on, later snapshots do not change the answer; None if they may at any time.
    - `next`: reference to the next page, relative to this one. `begins`: first instant of a history's series.
    - `vary`: the request headers that the answer depends on.
    """

    tag: str = ""
    state: Any = None
    as_of: Mapping[str, int] = field(default_factory=dict)
    modified: int | None = None
    due: int = 0
    closes_at: int | None = None
    next: str | None = None
    begins: int | None = None
    vary: str = "Accept-Encoding"

    def headers(self) -> Headers:
        """The headers that a 200 and a 304 share, except ETag and Cache-Control."""
        modified = () if self.modified is None else (("Last-Modified", falcon.dt_to_http(from_unix(self.modified))),)
        # A dictionary of dates (RFC 9651).
        dates = (f"{dataset}=@{at}" for dataset, at in sorted(self.as_of.items()))
        as_of = (("As-Of", ", ".join(dates)),) if self.as_of else ()
        # RFC 8288. Clients resolve the reference against the URL of their request, so it works behind any proxy.
        link = (("Link", f'<{self.next}>; rel="next"'),) if self.next else ()
        begins = () if self.begins is None else (("History-Begins", f"@{self.begins}"),)
        return (("Vary", self.vary), *modified, *as_of, *link, *begins)


class Answer:
    """An answer, which may be sent many times. `content_headers` are sent with a 200 only. A body that `is_packed` is
    sent without a coding, which would save nothing."""

    def __init__(
        self, validators: Validators, body: bytes = b"", content_headers: Headers = (), *, is_packed: bool = False
    ) -> None:
        self.validators = validators
        self.body = body
        self.headers = validators.headers()
        self.content_headers = content_headers
        self.gains_by_gzip = len(body) >= _MIN_SIZE and not is_packed

    @cached_attribute
    def gzip(self) -> bytes:
        """The compressed body, with hardly more bytes than the body."""
        return isal_zlib.compress(self.body, _LEVEL, _GZIP_FORMAT)


def send(req: falcon.Request, resp: falcon.Response, answer: Answer, cache_control: str) -> None:
    """Send a 200, or a 304 if If-None-Match lists the answer's tag, which differs between codings."""
    is_gzip = answer.gains_by_gzip and accepts_gzip(req.get_header("Accept-Encoding"))
    etag = f'"{answer.validators.tag}-gzip"' if is_gzip else f'"{answer.validators.tag}"'
    resp.set_headers((("ETag", etag), *answer.headers, ("Cache-Control", cache_control)))
    # Falcon's `req.if_none_match` accepts `"*"` and tags without quotes as matches, and takes three times as long.
    if_none_match = req.get_header("If-None-Match")
    if if_none_match is not None and (if_none_match.strip() == "*" or etag in _TAG.findall(if_none_match)):
        resp.status = falcon.HTTP_304
        # The client keeps the headers of the 200: a browser would replace a page's own policy by this one.
        for name in PROTECTIVE:
            resp.delete_header(name)
        return
    resp.set_headers(answer.content_headers)
    resp.data = answer.body
    if is_gzip:
        resp.set_header("Content-Encoding", "gzip")
        resp.data = answer.gzip


def etag_of(body: bytes) -> str:
    """A digest of a body: equal bytes have equal tags in every process and after every snapshot.

    Nobody gains from a collision, so the digest need not be cryptographic. A cryptographic digest would take as long as
    encoding a page of history.
    """
    return urlsafe_b64encode(xxh3_128_digest(body)).decode().rstrip("=")


def answer_of(body: bytes, headers: Headers = ()) -> Answer:
    """An answer that shows no snapshots."""
    return Answer(Validators(etag_of(body)), body, headers)


def reason_phrase(status: HTTPStatus) -> str:
    """The reason phrase of RFC 9110. Python before 3.13 has an older phrase for some statuses."""
    return _PHRASES.get(status, status.phrase)


def envelope(data: object, error: object, status: object, status_text: object) -> dict[str, object]:
    """The members of every JSON answer (rule 1.1, envelope)."""
    return {"data": data, "error": error, "status": status, "status_text": status_text}


def success(data: object, count: int | None = None) -> bytes:
    """The body of a 200. `data` may contain orjson.Fragments; lists have a `count`."""
    counted = {} if count is None else {"count": count}
    return orjson.dumps(envelope(data, None, 200, HTTPStatus.OK.phrase) | counted)


def failure(status: HTTPStatus, kind: str, scope: str, message: str) -> bytes:
    error = {"kind": kind, "scope": scope, "message": message}
    return orjson.dumps(envelope(None, error, status.value, reason_phrase(status)))
