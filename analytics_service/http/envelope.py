"""The envelope of every JSON response (rule 1.1): its bytes, and its schema."""

from collections.abc import Mapping
from http import HTTPStatus

import orjson

from analytics_service.present.schema import exactly

Schema = dict[str, object]
_NULL: Schema = {"type": "null"}


def reason(status: HTTPStatus) -> str:
    """The reason phrase of RFC 9110. Python before 3.13 has an older phrase for 414."""
    return "URI Too Long" if status is HTTPStatus.REQUEST_URI_TOO_LONG else status.phrase


def success(data: object, count: int | None = None) -> bytes:
    """The body of a 200. `data` may contain orjson.Fragments; lists have a `count`."""
    counted = {} if count is None else {"count": count}
    return orjson.dumps(_envelope(data, None, 200, HTTPStatus.OK.phrase) | counted)


def failure(status: HTTPStatus, kind: str, scope: str, message: str) -> bytes:
    """The body of an error."""
    return orjson.dumps(_envelope(None, _error(kind, scope, message), status.value, reason(status)))


def success_schema(data: Schema, *, counted: bool, always: bool) -> Schema:
    """The schema of a 200 with this `data`. `counted`: the data may be a list; `always`: it is never an object."""
    envelope = _envelope(data, _NULL, *_constants(HTTPStatus.OK))
    count = {"count": {"type": "integer", "minimum": 0}} if counted else {}
    return {**exactly(envelope | count), "required": [*envelope, *(count if always else ())]}


def failure_schema(status: HTTPStatus, scopes: Mapping[str, str]) -> Schema:
    """The schema of an error with this status. `scopes` has the scope of each kind of error with this status."""
    error = _error(
        {"type": "string", "enum": [*scopes]},
        {"type": "string", "enum": sorted(set(scopes.values()))},
        {"type": "string", "description": "What is wrong, and what is allowed."},
    )
    return exactly(_envelope(_NULL, exactly(error), *_constants(status)))


def _envelope(data: object, error: object, status: object, status_text: object) -> dict[str, object]:
    return {"data": data, "error": error, "status": status, "status_text": status_text}


def _error(kind: object, scope: object, message: object) -> dict[str, object]:
    return {"kind": kind, "scope": scope, "message": message}


def _constants(status: HTTPStatus) -> tuple[Schema, Schema]:
    return {"type": "integer", "const": status.value}, {"type": "string", "const": reason(status)}
