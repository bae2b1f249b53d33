"""A deployment that answers what a test says, and a source that follows it without waiting."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from analytics_service.config.settings import Settings
from analytics_service.sources.upstream.source import UpstreamSource

URL = "http://upstream/base"
NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
# The instant of a snapshot that is taken now, and its unix second.
AT = NOW - timedelta(seconds=30)
SECOND = 1772366400
Answer = bytes | Mapping[str, Any] | list[Any] | httpx.Response


def payload(data: Any, **members: Any) -> bytes:
    """An answer with a payload, which may be JSON already."""
    rest = json.dumps({"error": None, "status": 200, "status_text": "200 OK", **members})
    return b'{"data": ' + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b", " + rest[1:].encode()


def refusal(status: int, kind: str, message: str = "No.", **headers: str) -> httpx.Response:
    """An answer with an error."""
    error = {"kind": kind, "scope": "client", "message": message}
    return httpx.Response(status, json={"data": None, "error": error, "status": status}, headers=headers)


@dataclass
class Deployment:
    """Answers paths below /api/v1 with what `answers` has for them: a payload, a response, or a function of the query.

    `asked` are the requests, `waited` the pauses of the source.
    """

    answers: dict[str, Any] = field(default_factory=dict)
    as_of: str = ""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)

    def source(self, **settings: Any) -> UpstreamSource:
        """A source that follows the deployment."""

        def wait(seconds: float) -> None:
            self.waited.append(seconds)

        return UpstreamSource(
            URL,
            Settings(**settings),
            transport=httpx.MockTransport(self._answer),
            interval=0,
            wait=wait,
            now=lambda: NOW,
        )

    def following(self, folder: Path, *addresses: str, **settings: Any) -> UpstreamSource:
        """A source that follows addresses of the deployment."""
        file = folder / "addresses"
        file.write_text("\n".join(addresses))
        return self.source(addresses_file=file, **settings)

    def paths(self) -> list[str]:
        """The paths that were asked for, in order."""
        return [path for path, _ in self.asked]

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/base/api/v1")
        query = dict(request.url.params)
        self.asked.append((path, query))
        answer = self.answers.get(path)
        if isinstance(answer, Callable):  # type: ignore[arg-type]
            answer = answer(query)
        if answer is None:
            return refusal(404, "path_unknown")
        if isinstance(answer, httpx.Response):
            return answer
        if not isinstance(answer, bytes):
            answer = payload(answer)
        return httpx.Response(200, content=answer, headers={"As-Of": self.as_of} if self.as_of else {})
