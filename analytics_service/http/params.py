"""Every parameter of paths and queries, declared once: its parser, help and schema."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from analytics_service.config.parsers import flag, named, one_of
from analytics_service.history import times
from analytics_service.history.candles import OF_LAST, Aggregate, Fill
from analytics_service.history.formats import FORMATS
from analytics_service.history.formats.base import MAX_DIGITS
from analytics_service.history.grid import Period
from analytics_service.history.page import MAX_POINTS
from analytics_service.http import forms
from analytics_service.http.declared_params import Param
from analytics_service.market.assets import parse_address
from analytics_service.market.events import Action
from analytics_service.market.portfolio import OF_ACCOUNTS, Metric
from analytics_service.market.risk import AT_RISK

# The period that lets the service choose the buckets.
AUTO = "auto"
# The alignment of buckets whose boundaries do not depend on the range.
CALENDAR = "calendar"
MAX_LIMIT = 10_000
# Defaults: buckets in a page, and the most buckets with period=auto.
DEFAULT_LIMIT = 200
DEFAULT_POINTS = 500
# Items in a page of a list.
DEFAULT_ITEMS = 20
# Steps of a price, in percent, and the most steps.
LADDER_FROM, LADDER_TO, LADDER_STEP = Decimal(-95), Decimal(100), Decimal(5)
MAX_STEPS = 400


def _number(name: str, low: int, high: int, help: str, *, example: int | None = None, **options: Any) -> Param:
    examples = {} if example is None else {"examples": [example]}
    # Generators assume 32 bits for an integer without a format.
    size = {"format": "int64"} if high >= 2**31 else {}
    schema = {"type": "integer", **size, "minimum": low, "maximum": high, **examples}
    return Param(name, forms.integer(low, high), help, schema=schema, **options)


def _decimal(name: str, low: int, high: int, help: str) -> Param:
    schema = {"type": "number", "minimum": low, "maximum": high}
    return Param(name, forms.decimal(Decimal(low), Decimal(high)), help, schema=schema)


def _word(name: str, choices: Sequence[str], help: str, default: str) -> Param:
    return Param(name, one_of(*choices), help, default=default, schema={"type": "string", "enum": [*choices]})


def _flag(name: str, help: str) -> Param:
    return Param(name, flag, help, default=False, schema={"type": "boolean"})


def _time(name: str, help: str, example: object, **options: Any) -> Param:
    return Param(name, times.parse_time, help, schema={**times.SCHEMA, "examples": [example]}, **options)


def _text(name: str, parse: Callable[[str], Any], help: str, pattern: str, *examples: str, **options: Any) -> Param:
    schema = {"type": "string", "pattern": f"^{pattern}$", **({"examples": [*examples]} if examples else {})}
    return Param(name, parse, help, schema=schema, **options)


def _zone(help: str) -> Param:
    help = f"{help}; by default the service's zone, which is UTC unless its operator chose another."
    return _text("tz", forms.time_zone, help, "[A-Za-z0-9_+/ -]+", "America/New_York")


def _address(name: str, help: str, *, required: bool = True) -> Param:
    form = r"(0x[0-9a-fA-F]{40}|[!-~]{1,83}1[02-9ac-hj-np-zAC-HJ-NP-Z]{6,})"
    return _text(name, parse_address, help, form, "0x" + "0" * 40, required=required)


def _of_address(what: str) -> Param:
    return _address("address", f"only {what} of this address: bech32, or 0x and 40 hex digits.", required=False)


_TIMES = (
    "unix seconds, a date (its first second), a time such as 2026-01-31T12:00, in tz or with Z or an offset, now, or "
    "now-7d (units min, h, d, w, m, y)."
)
# Pattern of an asset id, or a symbol in its place.
_ID = r"((native|token);[^,]+|[^,;]+)"
WITH_TEXT = _flag("with_text", "true adds human-readable texts in extra.text.")
WITH_VALUE = _flag("with_value", "true adds USD values, and the prices used for them, in extra.value.")
WITH_PERCENT = _flag("with_percent", "true adds fractions of the amount in extra.percent.")
_LIMIT = f"{DEFAULT_LIMIT} by default; the whole range in files, and with period=auto."
RANGE = (
    _time("start", f"inclusive start of the range: {_TIMES}", "now-7d", required=True),
    _time("end", "inclusive end of the range, in the same forms; a date is its last second.", "now", required=True),
    Param(
        "period",
        named({**{period: period for period in Period}, AUTO: None}),
        "unit of a bucket: min, h, d, w, m or y; auto chooses the finest buckets that divide the range into at most "
        "`points`.",
        required=True,
        schema={"type": "string", "enum": [*Period, AUTO], "examples": ["d"]},
    ),
    _number("interval", 1, 10_000, "width of a bucket in periods: 1 by default; not allowed with period=auto."),
    _word(
        "align",
        ("start", CALENDAR),
        "start counts buckets from the start of the range. calendar uses boundaries that do not depend on the range; "
        "the first bucket contains the start. Minutes and hours count from local midnight, with an interval that "
        "divides a day; days from 1970-01-01; weeks from Monday 1970-01-05; months and years from the year 0, so three "
        "months are a quarter. period=auto always uses calendar.",
        "start",
    ),
    _number(
        "points",
        10,
        MAX_LIMIT,
        f"with period=auto, the most buckets for the range: {DEFAULT_POINTS} by default.",
    ),
    _zone("IANA time zone of the buckets, and of start and end"),
    _word(
        "fill",
        [*Fill],
        "what buckets without an observation show. previous repeats the value before, up to the newest observation of "
        "the whole history; buckets that begin later are null. last repeats it to the end of the range. none leaves "
        "them null. Always null: buckets after the end of an asset, and while a computed value is unknown.",
        Fill.PREVIOUS,
    ),
    _word(
        "agg",
        [*Aggregate],
        "how a point summarizes its bucket: the last, first, least (min) or greatest (max) observation; the mean, "
        "weighted by the time that each value holds; open, high, low, close and the number of observations (ohlc); or "
        "delta, the last value less the value before the bucket, 0 in a bucket without observations unless fill=none. "
        "The first delta of a cumulative history, such as loans, counts from 0; in other histories it is null.",
        Aggregate.LAST,
    ),
    _number("limit", 1, MAX_LIMIT, f"buckets in a page: {_LIMIT}"),
    _number("offset", 0, 10**18 - 1, "first bucket of the page: next_offset of the page before.", default=0),
    _number("digits", 1, MAX_DIGITS, "round values to this many significant digits, half to even; all when omitted."),
)
MAX_BUCKETS = 400
# A page of an address's history is calculated bucket by bucket.
_OF_ADDRESS = (
    _number("points", 10, MAX_BUCKETS, f"with period=auto, the most buckets: {MAX_BUCKETS} by default."),
    _text(
        "agg",
        one_of(*OF_LAST),
        "last is the value at the end of a bucket, delta the change since the end of the bucket before.",
        f"({'|'.join(OF_LAST)})",
        default=Aggregate.LAST,
    ),
    _number("limit", 1, MAX_BUCKETS, f"buckets in a page: {_LIMIT}"),
)
RANGE_OF_ADDRESS = tuple({param.name: param for param in (*RANGE, *_OF_ADDRESS)}.values())
METRIC = Param(
    "metric",
    one_of(*Metric),
    "USD value of everything that the address has less its debt (net-value), or of its collateral, debt or deposits; "
    "the least health of its borrow accounts; or debt divided by collateral (ltv).",
    schema={"type": "string", "enum": [*Metric], "examples": ["net-value"]},
    required=True,
)
FORMAT = Param(
    "format",
    named(FORMATS),
    "format of the page; without it Accept decides, json by default. A file has the whole range, or is refused if the "
    "range is too large, unless `limit` asks for a page.",
    schema={"type": "string", "enum": [*FORMATS], "examples": ["csv"]},
)
LIST_FORMAT = Param(
    "format",
    one_of("json", "csv"),
    "json, or csv: a row for each item, a column for each field; nested fields have dotted names. Without it Accept "
    f"decides. CSV has all items unless a limit is given; more than {MAX_POINTS:,} are refused.",
    schema={"title": "ListFormat", "type": "string", "enum": ["json", "csv"]},
)
MOMENT = (
    _time(
        "at",
        "show the state of this moment instead of the newest: unix seconds, a date (its last second), a time such as "
        "2026-01-31T12:00, in tz or with Z or an offset, or now-7d (units min, h, d, w, m, y). Not in the future.",
        "now-1h",
    ),
    _zone("IANA time zone of times in the query"),
)
CHANGES = _text(
    "changes",
    forms.parse_spans,
    f"adds `changes` to each price: its change over each of these lengths of time, at most {forms.MAX_CHANGES}, "
    "separated by commas, from 1min to 400d (units min, h, d, w, m, y; from d on by tz's calendar). A change is a "
    "fraction, with 6 decimals, of the price that long before the newest snapshot, or before `at`; null if there was "
    "none.",
    rf"{forms.SPAN}(,{forms.SPAN})*",
    "24h,7d",
)
ASSET = (
    _text(
        "asset_id",
        forms.asset_id,
        "id or symbol of an asset; either asset_id or symbol is required.",
        _ID,
        "native;uorb",
        alternative="symbol",
    ),
    _text("symbol", forms.symbol, "symbol of the asset, in any case, instead of asset_id.", "[^,]+"),
)
ASSET_IDS = _text(
    "asset_ids",
    forms.asset_ids,
    "asset ids or symbols, separated by commas; all assets when omitted.",
    f"{_ID}(,{_ID})*",
)
SYMBOLS = _text(
    "symbols",
    forms.symbols,
    "symbols of assets, in any case, separated by commas; they follow those of asset_ids.",
    "[^,]+(,[^,]+)*",
)

OTHERS = _flag(
    "others",
    "true adds a series without an asset: the sum of all assets that are not named, null where any value is unknown. "
    "Only for agg=last, in format=columns or a file.",
)


def _shape(default: str, help: str) -> Param:
    return _word("shape", ("newer", "older"), help, default)


SHAPE = _shape("newer", "older answers lists without sums, with the field names of single markets.")
LIST_SHAPE = _shape("older", "newer adds the markets' sums, and uses the field names of the overview.")
LOOKUP_SHAPE = _shape("older", "newer uses the field names of the overview.")
THRESHOLD = _decimal("threshold", 1, 10, f"accounts with health below this are at risk: {AT_RISK} by default.")
ASSUMED_PRICES = _text(
    "prices",
    forms.price_changes,
    f"prices to assume instead of the oracle's, at most {forms.MAX_PRICES}, such as ETH:-20%,BTC:60000: symbols or "
    "asset ids, each with a change in percent or a price in USD. Tokens priced by an asset, such as receipt tokens, "
    "move with it, and stand for it here.",
    r"[^,]+:[-+]?[0-9.]+%?(,[^,]+:[-+]?[0-9.]+%?)*",
    "BTC:-20%",
)
LADDER = (
    _decimal("from", -100, 10_000, f"change of the price at the first step, in percent: {LADDER_FROM} by default."),
    _decimal("to", -100, 10_000, f"greatest change of the price, in percent: {LADDER_TO} by default."),
    _decimal(
        "step",
        0,
        10_000,
        f"percentage points between steps: {LADDER_STEP} by default. At most {MAX_STEPS} steps.",
    ),
    _text(
        "following",
        forms.asset_ids,
        "other assets whose prices change by the same percentage, such as liquid-staking tokens that the oracle "
        "quotes: ids or symbols, separated by commas.",
        f"{_ID}(,{_ID})*",
    ),
)
BORROWERS = (
    _word(
        "sort", ("debt", "health", "collateral"), "greatest debt or collateral first, or least health first.", "debt"
    ),
    _number("limit", 1, 1_000, f"accounts in a page: {DEFAULT_ITEMS} by default; in CSV all."),
    _number(
        "offset",
        0,
        10**9,
        "accounts to skip. Prices change the order: to miss none, give all pages the same `at`, or ask for CSV.",
        default=0,
    ),
    _of_address("accounts"),
)
OF_ADDRESS = _of_address("events")
_ACTION = f"({'|'.join(Action)})"
EVENTS = (
    _text(
        "action",
        forms.several_of(*Action),
        f"only these actions, separated by commas: {', '.join(Action)}. return repays a borrow. A liquidation is two "
        "events with the same tx_hash: sum the values of one leg, debt or collateral, not of both.",
        f"{_ACTION}(,{_ACTION})*",
        "borrow,liquidate",
    ),
    _time("start", f"only events from this time on: {_TIMES}", "now-7d"),
    _time("end", "only events up to this time, in the same forms; a date is its last second.", "now"),
    replace(ASSET_IDS, help="only events of these assets: ids or symbols, separated by commas."),
    SYMBOLS,
    _number("limit", 1, 1_000, f"events in a page: {DEFAULT_ITEMS} by default; in CSV all."),
    Param(
        "prev_event_uuid",
        forms.uuid,
        "start after this event: event_uuid of the last event in the page before.",
        schema={"type": "string", "format": "uuid"},
    ),
    _word(
        "sort_order",
        ("desc", "asc"),
        "desc begins with the newest event, asc with the oldest. Events of the same second are ordered by event_uuid, "
        "so either leg of a liquidation may come first.",
        "desc",
    ),
)
ADDRESS = _address("address", "bech32 address, or 0x and 40 hex digits.")
_MAX_UINT32 = 2**32 - 1
ACCOUNT_INDEX = _number("index", 0, _MAX_UINT32, "index of the borrow account.", example=0, required=True)
ACCOUNT = _number("account_index", 0, _MAX_UINT32, f"only this borrow account, for metric {', '.join(OF_ACCOUNTS)}.")
POOL_INDEX = _number(
    "index",
    0,
    _MAX_UINT32,
    "index of the pool; either index or duration is required.",
    example=0,
    alternative="duration",
)
POOL_DURATION = _number(
    "duration", 0, _MAX_UINT32, "the pool's lockup in seconds, instead of index.", example=1_209_600
)
CONTRACT_ADDRESS = _address("contract_address", "address of a swap contract: bech32, or 0x and 40 hex digits.")
SOURCE_DENOM = _text("source_denom", forms.denom, "chain denom to swap from.", forms.DENOM, "uusdc", required=True)
