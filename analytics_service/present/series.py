"""Pages of history in responses. Their points come encoded, from history/formats."""

import orjson

from analytics_service.history.grid import Period
from analytics_service.present.kinds import ASSET_SPEC, NUMBER, USD, word
from analytics_service.present.shapes import Field, Kind, Many, Shape

_VALUE = USD.bare
POINT = Shape(
    "Point",
    "A bucket and its value.",
    (
        Field("t", NUMBER, "Beginning of the bucket, unix seconds."),
        Field(
            "v",
            _VALUE,
            "Last observation at or before the bucket's end; null if there is none.",
            optional=True,
        ),
    ),
)


def _encoded(shape: Shape) -> Kind:
    """A list of objects that is JSON already: history.formats writes points, a hundred times as fast."""
    return Kind(Many(shape), lambda points, _: orjson.Fragment(points))


INTERVAL = Shape(
    "Interval",
    "Width of a bucket.",
    (
        Field("unit", word(*Period), "Minutes, hours, days, weeks, months or years.", source="period"),
        Field("value", NUMBER, "Number of units.", source="interval"),
    ),
)
RANGE = Shape(
    "Range",
    "The requested range, the same on every page; of period=auto, the buckets that it lies in.",
    (
        Field("start", NUMBER, "Unix seconds, inclusive."),
        Field("end", NUMBER, "Unix seconds, inclusive."),
        Field("interval", INTERVAL, "Width of a bucket.", source=""),
    ),
)
PAGINATION = Shape(
    "Pagination",
    "Position of the page in the range.",
    (
        Field("interval_count", NUMBER, "Number of buckets in the whole range."),
        Field("next_offset", NUMBER, "Offset of the next page; null on the last page.", optional=True),
    ),
)
SERIES = Shape(
    "Series",
    "History of one asset.",
    (
        Field("asset", ASSET_SPEC, "The asset."),
        Field("points", Many(POINT), "One point for each bucket of the page."),
    ),
)
_RANGE = Field("range", RANGE, "The requested range.", source="query")
_PAGINATION = Field("pagination", PAGINATION, "Position of the page in the range.", source="")
SINGLE_SERIES = Shape(
    "SingleSeriesHistory",
    "A page of one history.",
    (_RANGE, Field("points", _encoded(POINT), "One point for each bucket of the page."), _PAGINATION),
)
MULTI_SERIES = Shape(
    "MultiSeriesHistory",
    "A page of the histories of many assets, all with the same buckets.",
    (_RANGE, Field("series", _encoded(SERIES), "One series for each asset.", source="points"), _PAGINATION),
)
