"""An independent, slow implementation of the rules of history: walks the calendar and the observations one by one."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, Inexact, localcontext
from fractions import Fraction
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

ZONES = (
    "UTC",
    "America/New_York",
    "Europe/London",
    "America/Santiago",
    "America/Havana",
    "Africa/Cairo",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "America/Sao_Paulo",
    "Asia/Kolkata",
)


def wall(second: int, zone: str) -> datetime:
    """What the clocks of a zone show."""
    return datetime.fromtimestamp(second, ZoneInfo(zone)).replace(tzinfo=None)


@cache
def day_begin(day: date, zone: str) -> int:
    """The first instant at which the zone's clocks show the day's midnight or anything later: found by looking."""
    around = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
    midnight = wall(around, "UTC")
    hourly = range(around - 16 * 3600, around + 40 * 3600, 3600)
    near = next(second for second in hourly if wall(second, zone) >= midnight)
    # No clock goes back by more than two hours, so it cannot have shown that any earlier.
    return next(second for second in range(near - 4 * 3600, near + 1, 60) if wall(second, zone) >= midnight)


def seconds_of(at: datetime, zone: str) -> list[int]:
    """Every second at which a zone's clocks show a wall time; of one that is skipped, the first that shows more."""
    near = int(at.replace(tzinfo=UTC).timestamp())
    # Clocks are whole minutes off, so of each minute only the second that may be shown is looked at.
    around = range(near - 26 * 3600, near + 26 * 3600, 60)
    later = next(place for place, second in enumerate(around) if wall(second, zone) >= at)
    found = [second for second in around if wall(second, zone) == at]
    return found or [next(s for s in range(around[later] - 60, around[later] + 1) if wall(s, zone) >= at)]


def begins(start: int, end: int, period: str, interval: int, zone: str) -> list[int]:
    """Starts of all buckets up to `end`, and of the one after them."""
    local = wall(start, zone)
    if period in ("min", "h"):
        width = interval * (60 if period == "min" else 3600)
        found = [start // 60 * 60 if period == "min" else _hour_begin(start, zone)]
        while found[-1] <= end:
            found.append(found[-1] + width)
        return found
    days = []
    k = 0
    while True:
        days.append(day_begin(_step(local.date(), period, k * interval), zone))
        if days[-1] > end:
            return days
        k += 1


# What a range may be divided into so that its points are few, the finest first.
WIDTHS = [("min", n) for n in (1, 5, 15, 30)] + [("h", n) for n in (1, 2, 4, 6, 12)]
WIDTHS += [("d", 1), ("d", 2), ("w", 1), ("m", 1), ("m", 3), ("y", 1)]


def aligned_begins(start: int, end: int, period: str, interval: int, zone: str) -> list[int]:
    """Starts of all buckets with boundaries that do not depend on the range, and of the one after them."""
    found: list[int] = []
    # The longest bucket, and a day more on each side for dates that clocks went back into.
    margin = {"min": 1, "h": 1}.get(period) or {"d": 1, "w": 7, "m": 31, "y": 366}[period] * interval + 2
    day, last = wall(start, zone).date() - timedelta(days=margin), wall(end, zone).date() + timedelta(days=margin)
    while day <= last:
        if period in ("min", "h"):
            width = interval * (60 if period == "min" else 3600)
            found += range(day_begin(day, zone), day_begin(day + timedelta(days=1), zone), width)
        elif _is_aligned(day, period, interval):
            found.append(day_begin(day, zone))
        day += timedelta(days=1)
    first = max(place for place, second in enumerate(found) if second <= start)
    after = next(place for place, second in enumerate(found) if second > end)
    return found[first : after + 1]


def _is_aligned(day: date, period: str, interval: int) -> bool:
    if period == "d":
        return (day - date(1970, 1, 1)).days % interval == 0
    if period == "w":
        return (day - date(1970, 1, 5)).days % (7 * interval) == 0
    if period == "m":
        return day.day == 1 and (day.year * 12 + day.month - 1) % interval == 0
    return (day.month, day.day) == (1, 1) and day.year % interval == 0


def _hour_begin(start: int, zone: str) -> int:
    """The last instant up to `start` at which a local hour, or what is left of one, begins: found by going back second
    by second. Of an hour that occurs twice only the pass that leads up to `start` counts."""
    second, shown = start, wall(start, zone)
    top = shown.replace(minute=0, second=0)
    while top <= (before := wall(second - 1, zone)) < shown:
        second, shown = second - 1, before
    return second


def _step(day: date, period: str, steps: int) -> date:
    if period in "dw":
        return day + timedelta(days=steps * (7 if period == "w" else 1))
    months = day.year * 12 + (day.month - 1 if period == "m" else 0) + steps * (1 if period == "m" else 12)
    return date(months // 12, months % 12 + 1, 1)


def instant(second: int) -> datetime:
    """A unix second as an aware instant."""
    return datetime.fromtimestamp(second, UTC)


def rollups(rows: Mapping[tuple[str, int], Decimal | None]) -> set[tuple[object, ...]]:
    """What the observations in each ended rollup come to, found by walking all of them in order of time: width, asset,
    start, instants of the first and the last one, count of those with a value and of those without, whether the
    last one has a value, seconds with a value, open, high, low, close, and area as text."""
    inside: dict[tuple[str, str, datetime, datetime], list[tuple[int, Decimal | None]]] = {}
    for (asset, second), price in sorted(rows.items(), key=lambda item: item[0][1]):
        at = instant(second)
        quarter_hour, day = instant(second - second % 900), at.replace(hour=0, minute=0, second=0)
        month = day.replace(day=1)
        for width, begin, end in (
            ("15min", quarter_hour, quarter_hour + timedelta(minutes=15)),
            ("day", day, day + timedelta(days=1)),
            ("month", month, month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)),
        ):
            inside.setdefault((width, asset, begin, end), []).append((second, price))
    closed = instant(max(second for _, second in rows) + 1)
    return {_rollup(*key[:3], seen) for key, seen in inside.items() if key[3] <= closed}


def _rollup(width: str, asset: str, begin: datetime, seen: list[tuple[int, Decimal | None]]) -> tuple[object, ...]:
    prices, close = [price for _, price in seen if price is not None], seen[-1][1]
    spans = [(price, after - at) for (at, price), (after, _) in pairwise(seen) if price is not None]
    with localcontext(prec=80):
        area = sum((price * length for price, length in spans), Decimal(0))
    first, last = (instant(seen[place][0]) for place in (0, -1))
    counted = (len(prices), len(seen) - len(prices), close is not None, sum(length for _, length in spans))
    candle = (prices[0], max(prices), min(prices)) if prices else (Decimal(0),) * 3
    return (width, asset, begin, first, last, *counted, *candle, close or Decimal(0), text(area))


class Oracle:
    """Values of buckets from a plain list of observations per asset; a later one for the same second replaces, and one
    of None says that the value is unknown from there on. The first change is that from `origin`."""

    def __init__(
        self, observations: Mapping[str, Sequence[tuple[int, Decimal | None]]], origin: Decimal | None = None
    ) -> None:
        self.origin = origin
        self.series = {asset: sorted(dict(rows).items()) for asset, rows in observations.items()}
        self.seconds = {asset: [second for second, _ in rows] for asset, rows in self.series.items()}
        self.values = {asset: [value for _, value in rows] for asset, rows in self.series.items()}
        self.newest = max(rows[-1][0] for rows in self.series.values())

    def page(
        self, asset: str, grid: list[int], end: int, offset: int, limit: int, fill: str, agg: str = "last"
    ) -> list[dict[str, object]]:
        """The points of a page."""
        buckets = list(pairwise(grid))[offset : offset + limit]
        return [{"t": begin, **self._point(asset, begin, min(after, end + 1), fill, agg)} for begin, after in buckets]

    def _point(self, asset: str, begin: int, after: int, fill: str, agg: str) -> dict[str, object]:
        seconds, values = self.seconds[asset], self.values[asset]
        first, stop = bisect_left(seconds, begin), bisect_left(seconds, after)
        own = values[first:stop]
        missing = not stop or (begin > self.newest and fill != "last") or (fill == "none" and not own)
        held = None if missing else values[stop - 1]
        if agg == "delta" and held is not None:
            held = self._change(held, values[first - 1] if first else self.origin)
        known = [value for value in own if value is not None]
        if agg == "ohlc":
            four = [known[0], max(known), min(known), own[-1]] if known else [held] * 4
            texts = [None if value is None else text(value) for value in four]
            return {**dict(zip("ohlc", texts, strict=True)), "n": len(known)}
        if agg == "mean" and not missing and (known or fill != "none"):
            held = self._mean(asset, max(begin, seconds[0]), min(after, self.newest + 1), held)
        elif agg in ("first", "min", "max") and known:
            held = {"first": known[0], "min": min(known), "max": max(known)}[agg]
        return {"v": None if held is None else text(held)}

    @staticmethod
    def _change(held: Decimal, before: Decimal | None) -> Decimal | None:
        """None if it does not fit 38 digits."""
        with localcontext(prec=80, traps=[Inexact]):
            change = None if before is None else held - before
        return None if change is None or change.copy_abs() >= 10**20 else change

    def _mean(self, asset: str, begin: int, after: int, held: Decimal | None) -> Decimal | None:
        """The mean over the seconds of [begin, after) that have a value, rounded half to even to 18 decimals."""
        if begin >= after:
            return held
        seconds = self.seconds[asset]
        first, stop = bisect_right(seconds, begin), bisect_left(seconds, after)
        values = self.values[asset][first - 1 : stop]
        with localcontext(prec=80, traps=[Inexact]):
            lengths = [until - since for since, until in pairwise([begin, *seconds[first:stop], after])]
            spans = [(value, length) for value, length in zip(values, lengths, strict=True) if value is not None]
            area = sum((value * length for value, length in spans), Decimal(0))
        if not (known := sum(length for _, length in spans)):
            return held
        # Python rounds fractions half to even.
        return Decimal(round(Fraction(area) / known * 10**18)).scaleb(-18, Context(prec=60))


def text(value: Decimal) -> str:
    """A decimal without exponent and without trailing zeros."""
    whole, _, rest = f"{value:f}".partition(".")
    return f"{whole}.{rest.rstrip('0')}".rstrip(".")
