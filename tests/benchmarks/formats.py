"""Pages of history in every format, compared with the JSON page of last values."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from analytics_service.http.coding import Coding
from tests.benchmarks.bench import Bench
from tests.benchmarks.gunicorn import gunicorn
from tests.benchmarks.harness import Figure, connection, in_turns
from tests.benchmarks.pages import BUCKETS, UNTIL_LOADED, ask_in_all_zones, draw

_ROUNDS = 150
_SERIES, _HOURS = 13, 90 * 24
# The end of the real prices.
_END = 1677283199


@dataclass(frozen=True, slots=True)
class Variant:
    """What is added to the query of a page, and the most that it may cost to the JSON page of last values."""

    more: Mapping[str, object]
    at_most: float | None


TIMES = {
    "columns": Variant({"format": "columns"}, 1.0),
    "csv": Variant({"format": "csv"}, 1.3),
    "arrow": Variant({"format": "arrow"}, 1.0),
    "parquet": Variant({"format": "parquet"}, 1.3),
    "ohlc in JSON": Variant({"agg": "ohlc"}, None),
}
BYTES = Variant({"format": "columns", "digits": 8}, 0.33)
_COMPRESSED_AT_MOST = 0.4


def run(bench: Bench) -> Iterator[Figure]:
    """Pages of 200 hourly and daily buckets over all assets, never the same twice, on one worker; then their bytes."""
    with bench.real_prices() as settings, gunicorn(settings) as service, connection(service.url) as ask:
        ask_in_all_zones(ask)
        ids = _assets(ask)
        known = {name: one for name, one in TIMES.items() if _is_known(ask, _page(ids, one.more))}
        for period in ("h", "d"):
            yield from _times(bench, ask, period, known)
        if _is_known(ask, _page(ids, BYTES.more)):
            yield from _bytes(ask, ids)


def _times(bench: Bench, ask: Callable[..., bytes], period: str, variants: Mapping[str, Variant]) -> Iterator[Figure]:
    """Every variant has pages of its own: what is kept of a zone or an hour would help whoever comes second."""

    pages = {name: draw(f"{bench.seed} {name}", period) for name in ("json", *variants)}

    def asking(name: str, more: Mapping[str, object]) -> Callable[[int], bytes]:
        return lambda number: ask("&".join(filter(None, [pages[name](number).path, urlencode(more)])))

    calls = {"json": asking("json", {}), **{name: asking(name, one.more) for name, one in variants.items()}}
    draws = pages.values()
    medians = in_turns(calls, _ROUNDS, warm_up=UNTIL_LOADED, before=lambda number: [page(number) for page in draws])
    label = f"{BUCKETS} {period}"
    yield Figure(f"{label}: JSON, median", medians["json"] * 1000, "ms")
    for name, one in variants.items():
        yield Figure(f"{label}: {name}, to JSON", medians[name] / medians["json"], "x", at_most=one.at_most)


def _bytes(ask: Callable[..., bytes], ids: Sequence[str]) -> Iterator[Figure]:
    plain, columns = ask(_page(ids, {})), ask(_page(ids, BYTES.more))
    label = f"{_SERIES} series, {_HOURS:,} h: columns of 8 digits to JSON"
    yield Figure(f"{label}, bytes", len(columns) / len(plain), "x", at_most=BYTES.at_most)
    for name in ("gzip", "zstd"):
        coded = [len(Coding(name).encode(body)) for body in (columns, plain)]
        yield Figure(f"{label}, bytes of {name}", coded[0] / coded[1], "x", at_most=_COMPRESSED_AT_MOST)


def _assets(ask: Callable[..., bytes]) -> list[str]:
    """The first assets that have a price at the beginning of the page whose bytes are counted."""
    series = json.loads(ask(_path(limit=1)))["data"]["series"]
    return [one["asset"]["id"] for one in series if one["points"][0]["v"] is not None][:_SERIES]


def _page(ids: Sequence[str], more: Mapping[str, object]) -> str:
    return _path(limit=_HOURS, asset_ids=",".join(ids), **more)


def _path(**query: object) -> str:
    bounds = {"start": _END + 1 - _HOURS * 3600, "end": _END, "period": "h"}
    return f"/api/v1/assets/price-history?{urlencode({**bounds, **query})}"


def _is_known(ask: Callable[..., bytes], path: str) -> bool:
    """Whether the service has the parameters of a path."""
    try:
        ask(path)
    except RuntimeError:
        return False
    return True
