"""Every format of history pages, by the name that requests use. The first one is the default."""

from collections.abc import Mapping, Sequence

from analytics_service.history.formats.base import Format
from analytics_service.history.formats.csv import CSV
from analytics_service.history.formats.json import COLUMNS, JSON
from analytics_service.history.formats.tables import ARROW, PARQUET

_ALL: Sequence[Format] = (JSON, COLUMNS, CSV, ARROW, PARQUET)
FORMATS: Mapping[str, Format] = {one.name: one for one in _ALL}
# The format that a media type asks for; JSON by column has to be asked for by name.
BY_MEDIA: Mapping[str, Format] = {one.media: one for one in FORMATS.values() if one is not COLUMNS}
MEDIA = tuple(BY_MEDIA)
