"""Points as JSON by column: an array of values for each series, beside the starts of buckets that all of them share."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, product

import orjson
import polars as pl

from analytics_service.history.formats.base import COUNT, Format, Points
from analytics_service.history.formats.pieces import Gaps, Leads, always, as_text, enclosed, filled, in_turns, joined
from analytics_service.history.sample import layout

# The text before a value, and after it, and what is in their place if there is none; and the same of a count, which is
# always there.
_BEFORE = ('"', "null"), ("", "")
_AFTER = ('"', ""), ("", "")
_NOTHING = "null", "0"


def encode(points: Points) -> Iterator[bytes]:
    """`[{"asset": ..., "symbol": ..., "v": [...]}, ...]`, or with `o`, `h`, `l`, `c` and `n`; `[{"v": [...]}]` of a
    single series."""
    head, tail = points.around

    def encoded(ids: Sequence[str], values: pl.DataFrame, lead: str, trail: str) -> bytes:
        first, *others = [_opening(points, asset_id) for asset_id in ids]
        columns = [values[name] for name in points.columns]
        return _encoded(columns, [lead + first, *others], len(points.begins), trail)

    return enclosed(points.parts, f"{head}[", f"]{tail}", encoded)


COLUMNS = Format("columns", "application/json", encode)


def _opening(points: Points, asset_id: str) -> str:
    """The JSON that opens a series, up to its first array."""
    if points.single:
        return "{"
    named = {"asset": asset_id, "symbol": points.symbols.get(asset_id)}
    return orjson.dumps(named).decode().removesuffix("}") + ","


def _encoded(columns: Sequence[pl.Series], opened: Sequence[str], count: int, trail: str) -> bytes:
    """The series, separated by commas, each with so many values in every column; then a trailing text."""
    names = [column.name for column in columns]
    if not count:
        return (",".join([f"{one}{_empty(names, 0)}" for one in opened]) + trail).encode()
    some = filled(columns, opened, lambda: _empty(names, count))
    columns, opened, trail = some.columns, some.opened, some.rest + trail
    if not opened:
        return trail.encode()
    series = len(opened)
    gaps, order = Gaps.of(columns[0], series, count), _order(series, count, len(names))
    firsts, *others = (
        _leads(names, opened, *forms) for forms in (product((0, 1), repeat=2) if gaps is not None else [(0, 0)])
    )
    texts = [*firsts, f"{_AFTER[names[-1] == COUNT][gaps is not None and gaps.at_end]}]}}{trail}", None]
    if gaps is not None:
        size, (place, within) = len(names) * series * count, layout(series, len(names) * count)
        there = gaps.at(place * count + within % count)
        order = there.in_order(order, Leads(size, len(firsts), size + len(texts), 2))
    return joined([*map(as_text, columns), pl.Series([*texts, *chain.from_iterable(others)])], order)


def _empty(names: Sequence[str], count: int) -> str:
    """The end of a series without a value."""
    arrays = [f'"{name}":[{",".join([_NOTHING[name == COUNT]] * count)}]' for name in names]
    return f"{','.join(arrays)}}}"


def _leads(names: Sequence[str], opened: Sequence[str], earlier: int, here: int) -> list[str]:
    """The text before a value: that of the first value of each series, of each further column, and of any other value
    of each column. `earlier` and `here` are 1 where the value before it, or the value itself, is missing."""
    afters = [_AFTER[name == COUNT][earlier] for name in names]
    befores = [_BEFORE[name == COUNT][here] for name in names]
    first, *others = [f'"{name}":[{before}' for name, before in zip(names, befores, strict=True)]
    return [
        *(f"{f'{afters[-1]}]}},' if place else ''}{one}{first}" for place, one in enumerate(opened)),
        *(f"{after}],{other}" for after, other in zip(afters, others, strict=False)),
        *(f"{after},{before}" for after, before in zip(afters, befores, strict=True)),
    ]


@lru_cache(maxsize=4)
def _order(series: int, count: int, columns: int) -> pl.Series:
    """The order of pieces: the text before a value, then the value, series by series, and within each by column.

    Pieces are the columns, bucket by bucket; the leads; and the end.
    """
    firsts = columns * series * count
    nexts = firsts + series - 1
    commas = nexts + columns
    place, within = layout(series, columns * count)
    column, bucket = within // count, within % count
    begins = (place + firsts).zip_with(column == 0, column + nexts)
    lead = begins.zip_with(bucket == 0, column + commas)
    value = column * (series * count) + bucket * series + place
    return pl.concat([in_turns(lead, value), always(commas + columns, 1)], rechunk=True)
