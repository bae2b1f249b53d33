"""Pages of history as the service answers them in JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_POINT, _CANDLE = ("v",), ("o", "h", "l", "c", "n")


def page_records(document: Any) -> list[dict[str, Any]] | None:
    """The points of a page in the form json or columns: t, asset_id, symbol and values; None of anything else."""
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, dict) or not data.keys() & {"series", "points", "t"}:
        return None
    try:
        return [record for series in data.get("series", [data]) for record in _records(data, series)]
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _records(page: Mapping[str, Any], series: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    asset = series.get("asset", "")
    named = {"asset_id": asset["id"] if isinstance(asset, dict) else asset, "symbol": series.get("symbol", "")}
    points: Sequence[Mapping[str, Any]] = series.get("points", ())
    if "points" not in series:
        names = _CANDLE if "o" in series else _POINT
        columns = [page["t"], *(series[name] for name in names)]
        points = [dict(zip(("t", *names), row, strict=True)) for row in zip(*columns, strict=True)]
    for point in points:
        values = {name: point[name] for name in (_CANDLE if "o" in point else _POINT)}
        yield {"t": point["t"], **named, **values}
