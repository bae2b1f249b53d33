"""Parameters of paths and queries, declared per route; undeclared ones are refused (rules 3.2 and 3.3)."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qsl
from zoneinfo import ZoneInfo

import falcon

from analytics_service.config import flag, zone
from analytics_service.history.candles import Aggregate
from analytics_service.history.digits import MAX_DIGITS
from analytics_service.history.formats.base import Format
from analytics_service.history.formats.registry import FORMATS
from analytics_service.history.grid import Period
from analytics_service.http import times
from analytics_service.http.errors import RequestError
from analytics_service.market.addresses import parse_address
from analytics_service.market.assets import split_id
from analytics_service.market.events import Action

MAX_LIMIT = 10_000
AUTO: Final = "auto"


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter. `parse` turns its text into a value, or raises a ValueError that says what is allowed.

    `schema` is its schema in the OpenAPI document. The first example is used in example requests. `instead` names
    another parameter; exactly one of the two must be given.
    """

    name: str
    parse: Callable[[str], Any]
    help: str
    required: bool = False
    default: Any = None
    instead: str | None = None
    schema: Mapping[str, object] = field(default_factory=lambda: {"type": "string"})

    @property
    def names(self) -> tuple[str, ...]:
        """The parameter's name, and that of the one which may be given instead."""
        return (self.name, self.instead) if self.instead else (self.name,)

    @property
    def is_needed(self) -> bool:
        """Whether one of the names must be given."""
        return self.required or self.instead is not None


def read(
    req: falcon.Request, in_query: Sequence[Param], in_path: Sequence[Param] = (), path: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The declared parameters of a request, parsed: those of the path, whose texts are in `path`, then the query's.

    RequestError for the first fault (rule 3.2).
    """
    given: dict[str, list[str]] = {}
    for name, value in parse_qsl(req.query_string, keep_blank_values=True, max_num_fields=None):
        given.setdefault(name, []).append(value)
    _require_known(given, [param.name for param in in_query])
    for param in in_query:
        if param.is_needed and not any(value for name in param.names for value in given.get(name, [])):
            raise RequestError(
                "query_parameter_missing",
                f"Query parameter {' or '.join(param.names)} is required and must not be empty: {param.help}",
            )
    parsed = {param.name: _path_value(param, (path or {})[param.name]) for param in in_path}
    return parsed | {param.name: _value(param, given) for param in in_query}


def shortened(value: str) -> str:
    """A caller's text, quoted and shortened for a message."""
    return repr(value if len(value) <= 80 else value[:77] + "...")


def _require_known(given: Iterable[str], names: Sequence[str]) -> None:
    for name in given:
        if name not in names:
            allowed = f"it takes {', '.join(names)}" if names else "it takes none"
            raise RequestError(
                "query_parameter_unknown", f"Query parameter {shortened(name)} is unknown here: {allowed}."
            )


def _path_value(param: Param, value: str) -> Any:
    try:
        return param.parse(value)
    except ValueError as error:
        raise RequestError("path_parameter_invalid", f"{param.name}={shortened(value)}: {error}.") from None


def _value(param: Param, given: Mapping[str, list[str]]) -> Any:
    values = given.get(param.name, [])
    if not values:
        return param.default
    if param.instead in given:
        raise RequestError("query_parameter_invalid", f"Only one of {' and '.join(param.names)} may be given.")
    if len(values) > 1:
        raise RequestError("query_parameter_invalid", f"Query parameter {param.name} is given {len(values)} times.")
    try:
        return param.parse(values[0])
    except ValueError as error:
        raise RequestError(
            "query_parameter_invalid", f"Query parameter {param.name}={shortened(values[0])}: {error}."
        ) from None


def integer(low: int, high: int) -> Callable[[str], int]:
    """An integer from `low` to `high`: decimal digits with an optional minus sign (rule 3.3)."""

    def parse(value: str) -> int:
        # No bound has more than 18 digits. Counting digits first avoids converting a huge number.
        if not re.fullmatch(r"-?[0-9]+", value):
            raise ValueError("must be a whole number in decimal digits")
        if len(value.lstrip("-0")) > 18 or not low <= int(value) <= high:
            raise ValueError(f"must be from {low} to {high}")
        return int(value)

    return parse


def one_of(*choices: str) -> Callable[[str], str]:
    """One of several words."""

    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return value

    return parse


# Made once, as listing the members of an enumeration takes longer than comparing them.
_period = one_of(*Period, AUTO)
_format = one_of(*FORMATS)
_aggregate = one_of(*Aggregate)
_action = one_of(*Action)


def period(value: str) -> Period | None:
    """A bucket's unit; None where it is to be chosen."""
    return None if _period(value) == AUTO else Period(value)


def page_format(value: str) -> Format:
    """A format of history pages."""
    return FORMATS[_format(value)]


def aggregate(value: str) -> Aggregate:
    """What a point tells of its bucket."""
    return Aggregate(_aggregate(value))


def action(value: str) -> Action:
    """What an address did."""
    return Action(_action(value))


@lru_cache(maxsize=1_000)
def time_zone(value: str) -> ZoneInfo:
    """An IANA time zone. Kept, because reading its rules again takes longer than calculating a page of days."""
    return ZoneInfo(zone(value))


def asset_id(value: str) -> str:
    """An asset id."""
    if "," in value:
        raise ValueError("must be one asset id, without commas")
    try:
        split_id(value)
    except ValueError:
        raise ValueError("must be an asset id, native;<denom> or token;<contract>") from None
    return value


def asset_ids(value: str) -> list[str]:
    """Asset ids separated by commas, without repeats."""
    return list(dict.fromkeys(asset_id(part) for part in value.split(",")))


def symbols(value: str) -> list[str]:
    """Symbols of assets separated by commas."""
    found = value.split(",")
    if not all(found):
        raise ValueError("must be symbols of assets, separated by commas")
    return found


def denom(value: str) -> str:
    """A plain chain denom, not an asset id."""
    if re.match(r"(native|token);", value):
        raise ValueError("must be a plain chain denom, not an asset id")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9/:._-]{0,199}", value):
        raise ValueError("must be a chain denom of letters, digits and / : . _ -")
    return value


def uuid(value: str) -> str:
    """A UUID in its usual form; in lower case."""
    if not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", value.lower()):
        raise ValueError("must be a UUID such as 00000000-0000-5000-8000-000000000000")
    return value.lower()


def _integers(low: int, high: int, *examples: int) -> dict[str, object]:
    shown = {"examples": [*examples]} if examples else {}
    return {"type": "integer", "minimum": low, "maximum": high, **shown}


_TIMES = (
    "unix seconds, a date (its first second), a time such as 2026-01-31T12:00, in tz or with Z or an offset, now, or "
    "now-7d (units min, h, d, w, m, y)."
)
_BOOLEAN = {"type": "boolean"}
_ID = r"(native|token);[^,]+"
WITH_TEXT = Param("with_text", flag, "true adds human-readable texts in extra.text.", default=False, schema=_BOOLEAN)
WITH_VALUE = Param(
    "with_value",
    flag,
    "true adds USD values, and the prices they were calculated with, in extra.value.",
    default=False,
    schema=_BOOLEAN,
)
WITH_PERCENT = Param(
    "with_percent", flag, "true adds fractions of the amount in extra.percent.", default=False, schema=_BOOLEAN
)
RANGE = (
    Param(
        "start",
        times.time_form,
        f"inclusive start of the range: {_TIMES}",
        required=True,
        schema={**times.SCHEMA, "examples": [1764547200]},
    ),
    Param(
        "end",
        times.time_form,
        "inclusive end of the range, in the same forms; a date is its last second.",
        required=True,
        schema={**times.SCHEMA, "examples": [1767225599]},
    ),
    Param(
        "period",
        period,
        "unit of a bucket: min, h, d, w, m or y. auto chooses the finest buckets that are no more than points.",
        required=True,
        schema={"type": "string", "enum": [*Period, AUTO], "examples": ["d"]},
    ),
    Param(
        "interval",
        integer(1, 10_000),
        "width of a bucket in units of period: 1 by default, none with period=auto.",
        schema=_integers(1, 10_000),
    ),
    Param(
        "points",
        integer(10, MAX_LIMIT),
        "with period=auto, the most buckets that the range may have: 500 by default.",
        schema=_integers(10, MAX_LIMIT),
    ),
    Param(
        "tz",
        time_zone,
        "IANA zone whose hours, days, months and years the buckets follow, and in which start and end are read.",
        schema={"type": "string", "pattern": "^[A-Za-z0-9_+/-]+$", "examples": ["America/New_York"]},
    ),
    Param(
        "fill",
        one_of("previous", "none"),
        "previous repeats the value before a bucket without an observation; none leaves it null.",
        default="previous",
        schema={"type": "string", "enum": ["previous", "none"]},
    ),
    Param(
        "agg",
        aggregate,
        "what a point tells of its bucket: the last, first, least (min) or greatest (max) observation; the mean, "
        "weighted by the time that each value holds; or open, high, low, close and the number of observations (ohlc).",
        default=Aggregate.LAST,
        schema={"type": "string", "enum": [*Aggregate]},
    ),
    Param(
        "limit",
        integer(1, MAX_LIMIT),
        "buckets of a page: 200 by default, points with period=auto.",
        schema=_integers(1, MAX_LIMIT),
    ),
    Param(
        "offset",
        integer(0, 10**18 - 1),
        "first bucket of the page: next_offset of the page before.",
        default=0,
        schema=_integers(0, 10**18 - 1),
    ),
    Param(
        "digits",
        integer(1, MAX_DIGITS),
        "significant digits that values are rounded to, half to even; all when omitted.",
        schema=_integers(1, MAX_DIGITS),
    ),
)
FORMAT = Param(
    "format",
    page_format,
    "format of the page; without it the one that Accept prefers, json by default.",
    schema={"type": "string", "enum": [*FORMATS], "examples": ["csv"]},
)
MOMENT = (
    Param(
        "at",
        times.time_form,
        "shows the state of this moment, not the newest: unix seconds, a date (its last second), a time such as "
        "2026-01-31T12:00, in tz or with Z or an offset, or now-7d (units min, h, d, w, m, y). Not in the future.",
        schema={**times.SCHEMA, "examples": ["now-1h"]},
    ),
    Param(
        "tz",
        time_zone,
        "IANA zone in which at is read.",
        schema={"type": "string", "pattern": "^[A-Za-z0-9_+/-]+$", "examples": ["America/New_York"]},
    ),
)
ASSET_ID = Param(
    "asset_id",
    asset_id,
    "id of an asset.",
    required=True,
    schema={"type": "string", "pattern": f"^{_ID}$", "examples": ["native;uorb"]},
)
ASSET_IDS = Param(
    "asset_ids",
    asset_ids,
    "asset ids separated by commas; all assets when omitted.",
    schema={"type": "string", "pattern": f"^{_ID}(,{_ID})*$"},
)
SYMBOLS = Param(
    "symbols",
    symbols,
    "symbols of assets separated by commas, in any case; beside asset_ids, those come first.",
    schema={"type": "string", "pattern": "^[^,]+(,[^,]+)*$"},
)


def _shape(default: str, help: str) -> Param:
    schema = {"type": "string", "enum": ["newer", "older"]}
    return Param("shape", one_of("newer", "older"), help, default=default, schema=schema)


SHAPE = _shape("newer", "older answers lists without sums, under the names that single markets use.")
LIST_SHAPE = _shape("older", "newer adds the markets' sums, and uses the names of the overview.")
LOOKUP_SHAPE = _shape("older", "newer uses the names of the overview.")
EVENTS = (
    Param(
        "action",
        action,
        "events of this action only.",
        schema={"type": "string", "enum": [*Action], "examples": ["borrow"]},
    ),
    Param("limit", integer(1, 1_000), "events of a page.", default=20, schema=_integers(1, 1_000)),
    Param(
        "prev_event_uuid",
        uuid,
        "the page after this event: event_uuid of the last one of the page before.",
        schema={"type": "string", "format": "uuid"},
    ),
    Param(
        "sort_order",
        one_of("desc", "asc"),
        "desc begins with the newest event, asc with the oldest.",
        default="desc",
        schema={"type": "string", "enum": ["desc", "asc"]},
    ),
)
_ADDRESS_FORM = r"^(0x[0-9a-fA-F]{40}|[!-~]{1,83}1[02-9ac-hj-np-zAC-HJ-NP-Z]{6,})$"
ADDRESS = Param(
    "address",
    parse_address,
    "bech32 address, or 0x and 40 hex digits.",
    required=True,
    schema={"type": "string", "pattern": _ADDRESS_FORM, "examples": ["0x" + "0" * 40]},
)
_MOST = 2**32 - 1
ACCOUNT_INDEX = Param(
    "index",
    integer(0, _MOST),
    "position among the address's borrow accounts.",
    required=True,
    schema=_integers(0, _MOST, 0),
)
POOL_INDEX = Param(
    "index",
    integer(0, _MOST),
    "position of the pool; either index or duration is required.",
    instead="duration",
    schema=_integers(0, _MOST, 0),
)
POOL_DURATION = Param(
    "duration",
    integer(0, _MOST),
    "length of the pool's lockup in seconds, instead of index.",
    schema=_integers(0, _MOST, 1_209_600),
)
CONTRACT_ADDRESS = Param(
    "contract_address",
    parse_address,
    "address of a swap contract: bech32, or 0x and 40 hex digits.",
    required=True,
    schema={"type": "string", "pattern": _ADDRESS_FORM, "examples": ["0x" + "0" * 40]},
)
SOURCE_DENOM = Param(
    "source_denom",
    denom,
    "plain chain denom to swap from.",
    required=True,
    schema={"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9/:._-]{0,199}$", "examples": ["uusdc"]},
)
