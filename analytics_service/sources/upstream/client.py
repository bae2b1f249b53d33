"""GET requests to upstream: pace, limits of time and size, retries, and the envelope of answers."""

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

import httpx
import tenacity

from analytics_service.config.settings import service_version
from analytics_service.errors import SourceError
from analytics_service.sources.upstream.fields import AnswerField
from analytics_service.sources.upstream.files import Names

_T = TypeVar("_T")
# Simultaneous requests, each on a connection of its own.
CONNECTIONS = 4
# Seconds between the starts of two requests.
INTERVAL = 0.1
# Seconds for a connection, and for each wait for data; a whole answer may take four times as long.
_CONNECT, TIMEOUT = 10.0, 30.0
# Bytes of an answer, at most.
_LARGEST = 2**24
_ATTEMPTS = 5
_GROWING = tenacity.wait_exponential(multiplier=0.5, max=10) + tenacity.wait_random(0, 1)
# 429 limits requests; the others come from proxies, and from a deployment that starts, stops or is busy.
_PASSING = (429, 502, 503, 504)
# The longest Retry-After, in seconds, that a request waits for. After longer ones the next snapshot tries again.
_LONGEST_WAIT = 60
# Kinds of errors that are not about a name: from a proxy, about a path, and about an instant before all snapshots.
NO_SNAPSHOT = "no_snapshot"
_NO_NAME = ("", "path_unknown", NO_SNAPSHOT)
_AS_OF = re.compile(r"([a-z][a-z0-9_]*)=@([0-9]{1,10})(?![0-9])")


class Refused(SourceError):
    """Upstream refuses a request for good. `kind` is the kind of its error; an error without a kind comes from a proxy,
    and says nothing about upstream."""

    def __init__(self, message: str, status: int, kind: str) -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


def none_if_lacking(ask: Callable[..., _T], *of: Any, known_path: bool = False) -> _T | None:
    """Upstream's answer; None if upstream lacks the path, the snapshot or a name. With `known_path`, only a name may be
    missing; else the refusal is raised."""
    try:
        return ask(*of)
    except Refused as error:
        if error.status in (400, 404) and error.kind not in (_NO_NAME if known_path else ("",)):
            return None
        raise


class _Passing(SourceError):
    """A transient failure; `seconds` is the pause that upstream asks for."""

    def __init__(self, message: str, seconds: float = 0.0) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class UpstreamAnswer:
    """The payload of an answer, its count, and the instant (unix second) of each dataset's snapshot, if stated."""

    data: AnswerField
    count: AnswerField | None
    as_of: Mapping[str, int]


class Client:
    """A client of the deployment at `url`. Safe for threads. SourceError says why there is no answer. `wait` pauses,
    and returns true when the process is about to end, like `threading.Event.wait`."""

    def __init__(
        self,
        url: str,
        names: Names,
        wait: Callable[[float], bool | None],
        *,
        key: str | None = None,
        interval: float = INTERVAL,
        transport: httpx.BaseTransport | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        self.url = url
        self._names = names
        self._wait = wait
        self._interval = interval
        self._begins = threading.Lock()
        self._longest = 4 * timeout
        self._http = httpx.Client(
            transport=transport,
            headers={
                "Accept": "application/json",
                # gzip expands at most a thousandfold.
                "Accept-Encoding": "gzip",
                "User-Agent": f"analytics-service/{service_version()}",
                # Redirects are not followed, so nobody else gets the key.
                **({"Authorization": f"Bearer {key}"} if key else {}),
            },
            timeout=httpx.Timeout(timeout, connect=_CONNECT, pool=self._longest),
            limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
        )

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def pause(self, seconds: float) -> None:
        """Wait. SourceError if the process is about to end."""
        if seconds and self._wait(seconds):
            raise SourceError(f"{self.url} is not asked. The process is about to end.")

    def get(self, path: str, **params: str | int) -> UpstreamAnswer:
        """The answer of a path below /api/v1. Transient failures are retried, after growing pauses, or the pauses that
        upstream asks for. Refused for any other error."""
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_Passing),
            wait=_patience,
            stop=tenacity.stop_after_attempt(_ATTEMPTS),
            sleep=self.pause,
            reraise=True,
        )
        path = f"/api/v1{self._names.path(path)}"
        return retrying(self._ask, f"{self.url}: {path}", path, params)

    def _ask(self, whose: str, path: str, params: Mapping[str, str | int]) -> UpstreamAnswer:
        with self._begins:
            self._wait(self._interval)
        try:
            with self._http.stream("GET", f"{self.url}{path}", params=params) as response:
                body = self._body(response, whose)
        except httpx.HTTPError as error:
            raise _Passing(f"{whose} cannot be read: {str(error) or type(error).__name__}.") from error
        if response.status_code != 200:
            raise _refusal(response, body, whose)
        try:
            # Decimals keep all their digits.
            parsed = json.loads(body, parse_float=Decimal, object_pairs_hook=self._names.translated)
        # Too many digits for Python are a ValueError, too.
        except (ValueError, RecursionError, ArithmeticError) as error:
            raise _Passing(f"{whose} answers {len(body)} bytes that are not JSON: {error!s:.200}.") from error
        envelope = AnswerField(parsed, f"{whose}: answer")
        as_of = {dataset: int(second) for dataset, second in _AS_OF.findall(response.headers.get("As-Of", ""))}
        return UpstreamAnswer(envelope["data"], envelope.get("count"), as_of)

    def _body(self, response: httpx.Response, whose: str) -> bytes:
        """The body, within limits of size and time. httpx decodes up to 64 KiB by all stated codings before bytes can
        be counted, so only gzip is allowed; and it limits each wait for data, not their sum."""
        deadline = time.monotonic() + self._longest
        if response.headers.get("Content-Encoding", "gzip").lower() not in ("gzip", "identity"):
            raise SourceError(f"{whose} answers in another coding than gzip.")
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > _LARGEST:
                raise SourceError(f"{whose} answers more than {_LARGEST:,} bytes.")
            if time.monotonic() > deadline:
                raise SourceError(f"{whose} takes more than {self._longest:g} s for an answer.")
        return bytes(body)


def _patience(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return max(_GROWING(state), error.seconds if isinstance(error, _Passing) else 0.0)


def _refusal(response: httpx.Response, body: bytes, whose: str) -> SourceError:
    """The error of a status other than 200."""
    status, kind, text = response.status_code, "", ""
    with suppress(ValueError, RecursionError, LookupError, TypeError):
        error = json.loads(body)["error"]
        text = "".join(filter(str.isprintable, str(error["message"]))).rstrip(".")[:200]
        kind = NO_SNAPSHOT if text.startswith("at:") else str(error.get("kind") or "")
    message = f"{whose} answers {status}{f': {text}' if text else ''}."
    # Only seconds count; a time by upstream's clock is ignored.
    after = response.headers.get("Retry-After", "")
    seconds = float(after) if after.isdecimal() else 0.0
    if status in _PASSING and seconds <= _LONGEST_WAIT:
        return _Passing(message, seconds)
    if status == 401:
        message += " Set ANALYTICS_UPSTREAM_KEY to one of its keys."
    return Refused(message, status, kind)
