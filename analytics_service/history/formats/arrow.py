"""Points as an Arrow IPC stream."""

from collections.abc import Iterator
from io import BytesIO

from polars import CompatLevel

from analytics_service.history.formats.base import FileFormat, Points, Tables
from analytics_service.history.formats.frames import frame


def encode(points: Points, tables: Tables) -> Iterator[bytes]:
    """A batch of rows for each part. Text is in the form that all versions of Arrow read."""
    file = BytesIO()
    frame(points, tables).write_ipc_stream(file, compression="uncompressed", compat_level=CompatLevel.oldest())
    yield file.getvalue()


ARROW = FileFormat("arrow", "application/vnd.apache.arrow.stream", encode, suffix="arrows", takes_numbers=True)
