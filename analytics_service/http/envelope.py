"""The envelope around every response (interface section 1), encoded once."""

from http import HTTPStatus

import orjson


def success(data: object, count: int | None = None) -> bytes:
    """A 200 body. `data` may hold orjson.Fragment for parts that are JSON already; `count` is for lists."""
    body: dict[str, object] = {"data": data, "error": None, "status": 200, "status_text": HTTPStatus.OK.phrase}
    if count is not None:
        body["count"] = count
    return orjson.dumps(body)


def failure(status: HTTPStatus, kind: str, scope: str, message: str) -> bytes:
    """An error body."""
    error = {"kind": kind, "scope": scope, "message": message}
    return orjson.dumps({"data": None, "error": error, "status": status.value, "status_text": status.phrase})
