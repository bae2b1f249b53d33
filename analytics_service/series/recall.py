"""Values of a page put together from chunks in memory."""

from collections.abc import Mapping, Sequence

import polars as pl

from analytics_service.series.chunk import Chunk, Place, Spot
from analytics_service.series.encode import NULL
from analytics_service.series.sample import layout


def recall(
    chunks: Mapping[Place, Chunk], places: Sequence[Spot], ids: Sequence[str], begins: Sequence[int], *, carry: bool
) -> pl.Series:
    """Endings of the points of all series, one after the other, for the buckets between `begins`.

    `places` are those of the page's first buckets; where no chunk is, and for the buckets after them, there is no
    value. Without `carry`, a bucket without an observation of its own has none either.
    """
    parts: list[pl.Series] = []
    # Where each bucket's first value stands in all parts, and how far apart its values are.
    firsts: list[int] = []
    widths: list[int] = []
    for spot in places:
        count, start = len(spot.hours), sum(map(len, parts))
        own = None if carry else begins[len(firsts) : len(firsts) + count]
        parts.append(_part(chunks.get(spot.place), ids, spot.hours, own))
        firsts += range(start, start + count)
        widths += [count] * count
    rest = len(begins) - 1 - len(firsts)
    if not rest and len(parts) == 1:
        return parts[0]
    # All later buckets share one value, which stands at the end.
    firsts += [sum(map(len, parts))] * rest
    widths += [0] * rest
    owner, bucket = layout(len(ids), len(firsts))
    first, width = (pl.Series(column, dtype=pl.UInt32)[bucket] for column in (firsts, widths))
    return pl.concat([*parts, pl.Series([NULL])], rechunk=True)[first + owner * width]


def _part(chunk: Chunk | None, ids: Sequence[str], hours: Sequence[int], begins: Sequence[int] | None) -> pl.Series:
    """Endings at hours of one chunk; with `begins`, only those that were observed since."""
    if chunk is None:
        return pl.Series([NULL]).new_from_index(0, len(ids) * len(hours))
    rows = chunk.rows(ids, hours)
    endings = chunk.endings[rows]
    if begins is None:
        return endings
    since = pl.Series(begins, dtype=pl.Int64)[layout(len(ids), len(hours))[1]]
    return endings.set(chunk.observed_at[rows] < since, NULL)


def is_settled(chunks: Mapping[Place, Chunk], places: Sequence[Spot], ids: Sequence[str], until: int) -> bool:
    """Whether the last of the page's hours, within which `until` lies, tells the values as of then."""
    if places[-1].place not in chunks:
        return True
    chunk = chunks[places[-1].place]
    newest = chunk.observed_at[chunk.rows(ids, places[-1].hours[-1:])].max()
    return bool(int(newest or 0) < until)  # type: ignore[arg-type]
