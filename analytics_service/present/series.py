"""Pages of history as responses show them (interface section 2, Time series); `series.page` writes them itself."""

from analytics_service.present.kinds import ASSET_SPEC, NUMBER, USD, word
from analytics_service.present.shapes import Field, Many, Shape

_VALUE = USD.bare
POINT = Shape(
    "Point",
    "A bucket and its value.",
    (
        Field("t", NUMBER, "Begin of the bucket, unix seconds."),
        Field(
            "v",
            _VALUE,
            "Last observation at or before the bucket's end; null where there is none.",
            optional=True,
        ),
    ),
)
INTERVAL = Shape(
    "Interval",
    "Width of a bucket.",
    (
        Field("unit", word("h", "d", "w", "m", "y"), "Hours, days, weeks, months or years."),
        Field("value", NUMBER, "How many of them."),
    ),
)
RANGE = Shape(
    "Range",
    "The range asked for, whatever the page.",
    (
        Field("start", NUMBER, "Unix seconds, inclusive."),
        Field("end", NUMBER, "Unix seconds, inclusive."),
        Field("interval", INTERVAL, "Width of a bucket."),
    ),
)
PAGINATION = Shape(
    "Pagination",
    "Where the page is.",
    (
        Field("interval_count", NUMBER, "Buckets in the whole range."),
        Field("next_offset", NUMBER, "Offset of the next page; null on the last.", optional=True),
    ),
)
SERIES = Shape(
    "Series",
    "History of one asset.",
    (
        Field("asset", ASSET_SPEC, "The asset."),
        Field("points", Many(POINT), "One for each bucket of the page."),
    ),
)
_RANGE = Field("range", RANGE, "The range asked for.")
_PAGINATION = Field("pagination", PAGINATION, "Where the page is.")
SINGLE_SERIES = Shape(
    "SingleSeriesHistory",
    "A page of one history.",
    (_RANGE, Field("points", Many(POINT), "One for each bucket of the page."), _PAGINATION),
)
MULTI_SERIES = Shape(
    "MultiSeriesHistory",
    "A page of the histories of many assets, all with the same buckets.",
    (_RANGE, Field("series", Many(SERIES), "One for each asset."), _PAGINATION),
)
