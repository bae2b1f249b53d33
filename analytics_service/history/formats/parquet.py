"""Points as a Parquet file."""

from collections.abc import Iterator
from io import BytesIO

from analytics_service.history.formats.base import FileFormat, Points, Tables
from analytics_service.history.formats.frames import frame


def encode(points: Points, tables: Tables) -> Iterator[bytes]:
    """The rows of all parts, compressed column by column: compressing the file again saves nothing."""
    file = BytesIO()
    frame(points, tables).write_parquet(file, compression="zstd")
    yield file.getvalue()


PARQUET = FileFormat(
    "parquet", "application/vnd.apache.parquet", encode, suffix="parquet", takes_numbers=True, is_packed=True
)
