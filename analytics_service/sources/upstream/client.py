"""One GET request to upstream: its pace, its bounds in time and size, which failures are retried, and its envelope."""

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn, TypeVar

import httpx
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential, wait_random

from analytics_service.config.settings import service_version
from analytics_service.errors import SourceError
from analytics_service.sources.upstream.fields import AnswerField
from analytics_service.sources.upstream.files import Names

_T = TypeVar("_T")
# Requests at the same time, each on a connection of its own.
CONNECTIONS = 4
# Least seconds between the begins of two requests. One that asks for a pause, by 429 and Retry-After, gets it.
INTERVAL = 0.1
MIB = 2**20
_ATTEMPTS = 5
_UNLESS_TOLD = wait_exponential(multiplier=0.5, max=10) + wait_random(0, 1)
# 429 asks for fewer requests; the others come from proxies, and from a deployment that starts, stops or is busy.
_PASSING = (429, 502, 503, 504)
# Seconds that a request waits at most when upstream asks for patience. After longer ones the caller asks again.
LONGEST_HOLD = 60.0
# Seconds that are believed at most: nobody would notice before long that a wrong Retry-After has stopped all snapshots.
_MOST_PATIENCE = 300.0
# Seconds of pauses that the end of the process does not cut short.
_SHORT = 0.25
_AS_OF = re.compile(r"([a-z][a-z0-9_]*)=@([0-9]{1,10})(?![0-9])")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds for a connection, for each wait for data, and for a whole body; bytes and values of an answer. A value
    may be two bytes of JSON, and takes up to 200 in memory."""

    connect: float = 10.0
    read: float = 30.0
    answer: float = 120.0
    size: int = 16 * MIB
    values: int = 1_000_000


BOUNDS = Bounds()


class Pace:
    """Lets requests begin `interval` seconds apart, or more.

    `wait` pauses and, like `threading.Event.wait`, returns true to give up. `clock` is in seconds.
    """

    def __init__(
        self, interval: float, wait: Callable[[float], bool | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval = interval
        self._wait = wait
        self._clock = clock
        self._lock = threading.Lock()
        self._next = self._held = clock()

    def enter(self) -> None:
        """Return when a request may begin. SourceError if it would have to wait too long, or if the process ends."""
        with self._lock:
            now = self._clock()
            if self._held - now > LONGEST_HOLD:
                raise SourceError(f"It asks to be left alone for {self._held - now:.0f} s more.")
            begin = max(now, self._next, self._held)
            self._next = begin + self._interval
        if begin > now:
            self.pause(begin - now)

    def hold(self, seconds: float) -> None:
        """Let no request begin for some seconds, at most a few minutes."""
        with self._lock:
            self._held = max(self._held, self._clock() + min(seconds, _MOST_PATIENCE))

    def pause(self, seconds: float) -> None:
        """Wait. SourceError if the process ends meanwhile; what has begun may still finish, at the same pace."""
        if self._wait(seconds):
            if seconds > _SHORT:
                raise SourceError("The process is about to end.")
            time.sleep(seconds)


class Refused(SourceError):
    """Upstream refuses a request for good, with a status; `kind` and `text` are those of its error. An error without a
    kind is that of a proxy, which does not know what upstream lacks."""

    def __init__(self, message: str, status: int, kind: str, text: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.text = status, kind, text

    def lacks_path(self) -> bool:
        """Whether upstream has no such path, or nothing there."""
        return self.status == 404 and self.kind != ""

    def lacks_entity(self) -> bool:
        """Whether upstream has nothing of that name, or there cannot be, on a path that it has."""
        return self.lacks_any() and self.kind != "path_unknown"

    def lacks_any(self) -> bool:
        """Whether it is either."""
        return self.status in (400, 404) and self.kind != ""


def none_if(lacks: Callable[[Refused], bool], ask: Callable[..., _T], *of: Any) -> _T | None:
    """What upstream answers; None if it refuses because it lacks that."""
    try:
        return ask(*of)
    except Refused as error:
        if lacks(error):
            return None
        raise


class _Passing(SourceError):
    """A failure that may pass."""


@dataclass(frozen=True, slots=True)
class UpstreamAnswer:
    """The payload of an answer, its count, and the instant (unix s) of the snapshot of each family, where it says."""

    data: AnswerField
    count: AnswerField | None
    as_of: Mapping[str, int]


class Client:
    """Asks a deployment at `url`. Safe for threads. SourceError says why there is no answer."""

    def __init__(
        self,
        url: str,
        pace: Pace,
        names: Names,
        *,
        key: str | None = None,
        transport: httpx.BaseTransport | None = None,
        bounds: Bounds = BOUNDS,
    ) -> None:
        self.url = url
        self.pace = pace
        self._names = names
        self._bounds = bounds
        self._http = httpx.Client(
            transport=transport,
            headers={
                "Accept": "application/json",
                # The coding that cannot make more than a thousand bytes of one.
                "Accept-Encoding": "gzip",
                "User-Agent": f"analytics-service/{service_version()}",
                # Redirects are not followed, so nobody else gets it.
                **({"Authorization": f"Bearer {key}"} if key else {}),
            },
            timeout=httpx.Timeout(bounds.read, connect=bounds.connect, pool=bounds.answer),
            limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
        )

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def get(self, path: str, **params: str | int) -> UpstreamAnswer:
        """The answer of a path below /api/v1. Failures that may pass are retried, with pauses that grow, or those that
        upstream asks for. Refused if it answers with another error."""
        retrying = Retrying(
            retry=retry_if_exception_type(_Passing),
            wait=_UNLESS_TOLD,
            stop=stop_after_attempt(_ATTEMPTS),
            sleep=self.pace.pause,
            reraise=True,
        )
        path = f"/api/v1{self._names.path(path)}"
        return retrying(self._ask, f"{self.url}: {path}", path, params)

    def _ask(self, whose: str, path: str, params: Mapping[str, str | int]) -> UpstreamAnswer:
        try:
            self.pace.enter()
        except SourceError as error:
            raise SourceError(f"{whose} is not asked. {error}") from None
        try:
            with self._http.stream("GET", f"{self.url}{path}", params=params) as response:
                body = self._body(response, whose)
        except httpx.HTTPError as error:
            raise _Passing(f"{whose} cannot be read: {str(error) or type(error).__name__}.") from error
        if response.status_code != 200:
            self._refuse(response, body, whose)
        envelope = AnswerField(self._envelope(body, whose), whose)
        if envelope.get("error"):
            raise SourceError(f"{whose} answers 200 with an error: {_error(envelope.value)[1]}")
        if (data := envelope.get("data")) is None:
            raise SourceError(f"{whose}: its envelope has no data.")
        as_of = _AS_OF.findall(response.headers.get("As-Of", ""))
        # The place of a field begins below `data`.
        payload = AnswerField(data.value, whose)
        return UpstreamAnswer(payload, envelope.get("count"), {family: int(second) for family, second in as_of})

    def _body(self, response: httpx.Response, whose: str) -> bytes:
        """The body, read within its bounds. httpx decodes what it has received, at most 64 KiB, before it is counted,
        and bounds each wait for data, not their sum."""
        deadline = time.monotonic() + self._bounds.answer
        coding = response.headers.get("Content-Encoding", "identity")
        if coding.lower() not in ("identity", "gzip"):
            raise SourceError(f"{whose} answers in the coding {coding[:40]!r}. Only gzip was asked for.")
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > self._bounds.size:
                raise SourceError(f"{whose} answers more than {self._bounds.size // MIB} MiB.")
            if time.monotonic() > deadline:
                raise SourceError(f"{whose} takes more than {self._bounds.answer:g} s for an answer.")
        return bytes(body)

    def _envelope(self, body: bytes, whose: str) -> dict[str, Any]:
        """The envelope. Numbers keep all their digits."""
        if sum(map(body.count, (b",", b"[", b"{"))) > self._bounds.values:
            raise SourceError(f"{whose} answers more than {self._bounds.values:,} values.")
        try:
            envelope = json.loads(body, parse_float=Decimal, parse_constant=_no_constant, **self._names.reading())
        # Digits that Python refuses to convert are a ValueError, too.
        except (ValueError, RecursionError, ArithmeticError) as error:
            raise _Passing(f"{whose} answers {len(body)} bytes that are not JSON: {error!s:.200}.") from error
        if not isinstance(envelope, dict):
            raise SourceError(f"{whose} answers JSON that is not an object.")
        return envelope

    def _refuse(self, response: httpx.Response, body: bytes, whose: str) -> NoReturn:
        """Raise the error that a status other than 200 stands for."""
        status, (kind, text) = response.status_code, ("", "")
        with suppress(ValueError, RecursionError):
            kind, text = _error(json.loads(body))
        message = f"{whose} answers {status}{f': {text}' if text else ''}."
        if response.is_redirect:
            raise SourceError(f"{message} It redirects; name the URL where it is now.")
        if status in _PASSING:
            # Seconds; what is a time by upstream's own clock is left to the usual pauses.
            seconds = re.fullmatch(r"[0-9]{1,7}", response.headers.get("Retry-After", ""))
            self.pace.hold(float(seconds[0]) if seconds else 0.0)
            raise _Passing(message)
        if status == 401:
            message = f"{message} Set ANALYTICS_UPSTREAM_KEY to one of its keys."
        raise Refused(message, status, kind, text)


def _error(envelope: Any) -> tuple[str, str]:
    """Kind and message of the error in an envelope, as far as there are any."""
    error = envelope.get("error") if isinstance(envelope, dict) else None
    if not isinstance(error, dict):
        return "", ""
    text = "".join(filter(str.isprintable, str(error.get("message") or "")))
    return str(error.get("kind") or ""), text.rstrip(".")[:200]


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON value")
