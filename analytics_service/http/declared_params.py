"""Declares and parses parameters of paths and queries. Undeclared parameters are refused (rule 3.2, first fault)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import falcon

from analytics_service.http.errors import RequestError, shorten


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter. `parse` converts the caller's text, or raises a ValueError that says what is allowed.

    `schema` is the parameter's schema in the OpenAPI document; example requests use its first example. `alternative`
    names another parameter: exactly one of the two must be given.
    """

    name: str
    parse: Callable[[str], Any]
    help: str
    schema: Mapping[str, object]
    required: bool = False
    default: Any = None
    alternative: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, self.alternative) if self.alternative else (self.name,)


def parse_params(
    req: falcon.Request, in_query: Sequence[Param], in_path: Sequence[Param] = (), path: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The parsed parameters of a request by name: parameters of the path, then of the query.

    Raises RequestError for the first fault (rule 3.2).
    """
    raw = {name: value if isinstance(value, list) else [value] for name, value in req.params.items()}
    declared = [param.name for param in in_query]
    for unknown in (name for name in raw if name not in declared):
        allowed = f"this path takes {', '.join(declared)}" if declared else "this path takes none"
        raise RequestError("query_parameter_unknown", f"Query parameter {shorten(unknown)} is unknown: {allowed}.")
    for param in in_query:
        if (param.required or param.alternative) and not any(
            value for name in param.names for value in raw.get(name, [])
        ):
            raise RequestError(
                "query_parameter_missing",
                f"Query parameter {' or '.join(param.names)} is required and must not be empty: {param.help}",
            )
    parsed = {}
    for param in in_path:
        value = (path or {})[param.name]
        try:
            parsed[param.name] = param.parse(value)
        except ValueError as error:
            raise RequestError("path_parameter_invalid", f"{param.name}={shorten(value)}: {error}.") from None
    return parsed | {param.name: _value(param, raw) if raw.get(param.name) else param.default for param in in_query}


def _value(param: Param, raw: Mapping[str, list[str]]) -> Any:
    values = raw[param.name]
    if param.alternative in raw:
        both = " and ".join(f"{name}={shorten(raw[name][0])}" for name in param.names)
        raise RequestError("query_parameter_invalid", f"Give only one of {both}.")
    if len(values) > 1:
        times = f"{len(values)} times, as {shorten(', '.join(values))}"
        raise RequestError("query_parameter_invalid", f"Query parameter {param.name} was given {times}: give it once.")
    try:
        return param.parse(values[0])
    except ValueError as error:
        raise RequestError(
            "query_parameter_invalid", f"Query parameter {param.name}={shorten(values[0])}: {error}."
        ) from None
