"""Pages of history in responses. `history/formats` encodes their points."""

import orjson

from analytics_service.history.grid import Period
from analytics_service.market.kinds import Rate, Ratio
from analytics_service.present.json_schema import or_null, schema_of
from analytics_service.present.renderings import ASSET_SPEC, DECIMAL, NUMBER, STRING, word
from analytics_service.present.shapes import Field, Many, Node, OneOf, Rendering, Shape
from analytics_service.store.datasets.histories import HISTORIES

_FRACTIONS = ", ".join(history.slug for history in HISTORIES if isinstance(history.kind, (Rate, Ratio)))
_VALUES = Many(Rendering(or_null(schema_of(DECIMAL)), DECIMAL.json))
VALUE_POINT = Shape.of(
    "Point",
    "A bucket and its value.",
    Field("t", NUMBER, "Start of the bucket, unix seconds."),
    Field(
        "v",
        DECIMAL,
        f"By default the last observation before the bucket's end; `agg` chooses another value. Null if there is none. "
        f"In USD; values of {_FRACTIONS} are fractions.",
        optional=True,
    ),
)
OHLC_POINT = Shape.of(
    "OhlcPoint",
    "A bucket and its observations.",
    Field("t", NUMBER, "Start of the bucket, unix seconds."),
    Field("o", DECIMAL, "First observation; in a bucket without observations, the value before.", optional=True),
    Field("h", DECIMAL, "Greatest observation.", optional=True),
    Field("l", DECIMAL, "Least observation.", optional=True),
    Field("c", DECIMAL, "Last observation.", optional=True),
    Field("n", NUMBER, "Number of observations."),
)
POINT = OneOf(
    "HistoryPoint",
    "A bucket of a history.",
    key=lambda page, _: page.agg,
    choices={"last": VALUE_POINT, "ohlc": OHLC_POINT},
)


def _encoded(node: Node) -> Rendering:
    """A list that is already JSON: `history/formats` encodes points a hundred times as fast."""
    return Rendering(Many(node), lambda fragment, _: orjson.Fragment(fragment))


INTERVAL = Shape.of(
    "Interval",
    "Width of a bucket.",
    Field("unit", word(*Period), "Minutes, hours, days, weeks, months or years.", source="period"),
    Field("value", NUMBER, "Number of units.", source="interval"),
)
RANGE = Shape.of(
    "Range",
    "The requested range, equal on every page. With period=auto, extended to whole buckets.",
    Field("start", NUMBER, "Unix seconds, inclusive."),
    Field("end", NUMBER, "Unix seconds, inclusive."),
    Field("interval", INTERVAL, "Width of a bucket.", source=""),
)
PAGINATION = Shape.of(
    "Pagination",
    "Position of the page in the range.",
    Field("interval_count", NUMBER, "Number of buckets in the whole range.", source="grid.count"),
    Field("next_offset", NUMBER, "Offset of the next page; null on the last page.", optional=True),
)
SERIES = Shape.of(
    "Series",
    "History of one asset.",
    Field("asset", ASSET_SPEC, "The asset."),
    Field("symbol", STRING, "Symbol of the asset, if known.", optional=True),
    Field("points", Many(POINT), "One point for each bucket of the page."),
)
_RANGE = Field("range", RANGE, "The requested range.", source="query")
_PAGINATION = Field("pagination", PAGINATION, "Position of the page in the range.", source="query")
_ARRAY = Rendering(Many(NUMBER), lambda numbers, _: numbers)
_CANDLES = {"o": "First", "h": "Greatest", "l": "Least", "c": "Last"}
COLUMN_SERIES = Shape.of(
    "ColumnSeries",
    "History of one asset, with an array for each column of its points.",
    Field("asset", STRING, "Id of the asset; not in a single series.", sometimes=True),
    Field("symbol", STRING, "Symbol of the asset, if known; not in a single series.", optional=True, sometimes=True),
    Field("v", _VALUES, "Values of all buckets, except with agg=ohlc.", sometimes=True),
    *(
        Field(name, _VALUES, f"{which} observations, with agg=ohlc.", sometimes=True)
        for name, which in _CANDLES.items()
    ),
    Field("n", Many(NUMBER), "Numbers of observations, with agg=ohlc.", sometimes=True),
)
COLUMNS = Shape.of(
    "HistoryColumns",
    "A page of histories by column, with format=columns.",
    _RANGE,
    Field("t", _ARRAY, "Starts of the buckets, unix seconds.", source=lambda page: [*page.query.starts]),
    Field("series", _encoded(COLUMN_SERIES), "One series for each asset.", source="body"),
    _PAGINATION,
)


def _by_format(name: str, help: str, points: Field) -> OneOf:
    """A page in one of the JSON formats."""
    shape = Shape.of(f"{name}Points", f"{help} Each bucket is a point.", _RANGE, points, _PAGINATION)
    return OneOf(name, help, key=lambda page, _: page.query.format.name, choices={"json": shape, "columns": COLUMNS})


SINGLE_SERIES = _by_format(
    "SingleSeriesHistory",
    "A page of one history.",
    Field("points", _encoded(POINT), "One point for each bucket of the page.", source="body"),
)
MULTI_SERIES = _by_format(
    "MultiSeriesHistory",
    "A page of the histories of assets, all with the same buckets.",
    Field("series", _encoded(SERIES), "One series for each asset.", source="body"),
)
