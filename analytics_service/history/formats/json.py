"""Points as JSON, vectorised."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, product

import orjson
import polars as pl

from analytics_service.history.formats.base import OHLC, VALUE, Format, Points
from analytics_service.history.formats.pieces import (
    Gaps,
    Leads,
    always,
    as_text,
    enclosed,
    filled,
    in_turns,
    joined,
    value_order,
)
from analytics_service.history.sample import layout
from analytics_service.market.assets import asset_spec


@dataclass(frozen=True, slots=True)
class _Form:
    """The text `before` a point's first value, `between` its values, and `after` the last one. What is before and after
    them comes in two forms: the second one is that of a point without a value."""

    before: tuple[str, str]
    between: Sequence[str]
    after: tuple[str, str]


_FORMS = {
    VALUE: _Form(('"v":"', '"v":null'), (), ('"}', "}")),
    OHLC: _Form(
        ('"o":"', '"o":null,"h":null,"l":null,"c":null,"n":0'), ('","h":"', '","l":"', '","c":"', '","n":'), ("}", "}")
    ),
}


def encode(points: Points) -> Iterator[bytes]:
    """`[point, ...]` of a single series, else `[{"asset": ..., "points": [point, ...]}, ...]`."""
    head, tail = points.around
    begin, closed, end = (head, "]", tail) if points.single else (f"{head}[", "]}", f"]{tail}")

    def encoded(ids: Sequence[str], values: pl.DataFrame, lead: str, trail: str) -> bytes:
        first, *others = ["["] if points.single else [_opening(asset_id) for asset_id in ids]
        columns = [values[name] for name in points.columns]
        return _encoded(columns, points, [lead + first, *others], closed, trail)

    return enclosed(points.parts, begin, end, encoded)


JSON = Format("json", "application/json", encode, names_assets=False)


def _encoded(columns: Sequence[pl.Series], points: Points, opened: Sequence[str], closed: str, trail: str) -> bytes:
    """The points of some series, separated by commas, each series enclosed in its text in `opened` and `closed`; then
    a trailing text."""
    if not points.begins:
        return (",".join([one + closed for one in opened]) + trail).encode()
    form = _FORMS[points.columns]
    some = filled(columns, opened, lambda: f"{_empty(points, form)}{closed}")
    columns, opened, trail = some.columns, some.opened, some.rest + trail
    if not opened:
        return trail.encode()
    series, count = len(opened), len(points.begins)
    gaps, order = Gaps.of(columns[0], series, count), _order(series, count, len(columns))
    afters, befores = (form.after, form.before) if gaps is not None else (form.after[:1], form.before[:1])
    firsts, *others = (_leads(points, opened, closed, after, before) for after, before in product(afters, befores))
    end = form.after[gaps is not None and gaps.at_end] + closed + trail
    texts = [*firsts, *form.between, end, None]
    if gaps is not None:
        size = len(columns) * series * count
        order = gaps.in_order(order, Leads(size, len(firsts), size + len(texts), 2 * len(columns)))
    return joined([*map(as_text, columns), pl.Series([*texts, *chain.from_iterable(others)])], order)


def _empty(points: Points, form: _Form) -> str:
    """The points of a series without a value."""
    return ",".join([f'{{"t":{begin},{form.before[True]}{form.after[True]}' for begin in points.begins])


def _leads(points: Points, opened: Sequence[str], closed: str, after: str, before: str) -> list[str]:
    """The text between values: for each bucket, and then for the first bucket of each series.

    It ends the previous point with `after`, and begins this one, up to `before`.
    """
    first, *firsts = [f'{one}{{"t":{points.begins[0]},{before}' for one in opened]
    later = [f'{after},{{"t":{begin},{before}' for begin in points.begins]
    return [*later, first, *(f"{after}{closed},{lead}" for lead in firsts)]


@lru_cache(maxsize=10_000)
def _opening(asset_id: str) -> str:
    return f'{{"asset":{orjson.dumps(asset_spec(asset_id)).decode()},"points":['


@lru_cache(maxsize=8)
def _order(series: int, count: int, columns: int) -> pl.Series:
    """The order of pieces: for each point its lead and value, then separator and value of each further column; the end.

    Pieces are the columns, bucket by bucket; the leads of all buckets and of all series; what is between two columns;
    and the end.
    """
    size = series * count
    leads, between, value = columns * size, columns * size + count + series, value_order(series, count)
    further = [(always(between + place, size), value + size * (place + 1)) for place in range(columns - 1)]
    turns = in_turns(_lead_of(series, count) + leads, value, *chain.from_iterable(further))
    return pl.concat([turns, always(between + columns - 1, 1)], rechunk=True)


def _lead_of(series: int, count: int) -> pl.Series:
    """The lead that precedes each point: that of its bucket, or one of the `series` leads that follow those."""
    place, bucket = layout(series, count)
    return bucket.zip_with(bucket > 0, place + count)
