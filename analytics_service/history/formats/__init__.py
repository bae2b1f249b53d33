"""All formats of history pages, by name in requests. The first is the default."""

from collections.abc import Mapping, Sequence

from analytics_service.history.formats.arrow import ARROW, PARQUET
from analytics_service.history.formats.base import Format
from analytics_service.history.formats.csv import CSV
from analytics_service.history.formats.json import COLUMNS, JSON

_ALL: Sequence[Format] = (JSON, COLUMNS, CSV, ARROW, PARQUET)
FORMATS: Mapping[str, Format] = {fmt.name: fmt for fmt in _ALL}
# JSON by column is available by name only.
BY_MEDIA: Mapping[str, Format] = {fmt.media: fmt for fmt in FORMATS.values() if fmt is not COLUMNS}
MEDIA = tuple(BY_MEDIA)
