"""Random pages of a history, asked over the app and compared with the oracle value by value."""

import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import urlencode

import falcon.testing
import polars as pl

from analytics_service.clickhouse.columns import with_version
from analytics_service.clickhouse.connection import Store
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.market.prices import Price
from analytics_service.store import ledger
from analytics_service.store.datasets.observations import OBSERVATIONS, price_frame, with_known_times
from analytics_service.store.rollups import close_rollups
from tests import oracle
from tests.stored import write_assets

# None says that there is no value from there on.
Observations = dict[str, list[tuple[int, Decimal | None]]]
# Longest ranges that keep the oracle's walk short, in seconds.
_SPANS = {
    "min": 2 * 86_400,
    "h": 20 * 86_400,
    "d": 300 * 86_400,
    "w": 800 * 86_400,
    "m": 900 * 86_400,
    "y": 2_000 * 86_400,
}


def asset(name: str) -> Asset:
    """A token with nothing special about it."""
    return Asset(AssetGroup.TOKEN, name, name, name, name.lower(), 6, 2)


def commit(store: Store, observations: Observations, kind: str = "job", version: int | None = None) -> None:
    """Write observations as one completed run."""
    version = version or ledger.new_version(store)
    write(store, observations, version)
    seconds = [second for seen in observations.values() for second, _ in seen]
    oldest, newest = min(seconds), max(seconds)
    run = ledger.LedgerRow("prices", newest, kind, oldest, newest, len(seconds), "test", version)
    store.insert(ledger.LEDGER, ledger.ledger_frame([run]))


def write(store: Store, observations: Observations, version: int) -> None:
    """Write observations of which the ledger does not tell yet."""
    write_assets(store, [asset(asset_id.partition(";")[2]) for asset_id in observations], version)
    rows = [(asset_id, second, usd) for asset_id, seen in observations.items() for second, usd in seen]
    known = price_frame(Price(name, oracle.instant(second), usd) for name, second, usd in rows if usd is not None)
    unknown = [("price", *row) for row in rows if row[-1] is None]
    both = pl.concat([known, pl.DataFrame(unknown, known.schema, orient="row")])
    store.insert(OBSERVATIONS, with_version(with_known_times(both), version))
    seconds = [second for seen in observations.values() for second, _ in seen]
    head = ledger.read_head(store, "prices")
    reached = [head.last_observed_at] if head else []
    close_rollups(store, ["price"], min([*(at + 1 for at in reached), min(seconds)]), max([*reached, *seconds]) + 1)


@dataclass
class Pages:
    """Draws random pages of a known history and compares."""

    client: falcon.testing.TestClient
    known: oracle.Oracle
    random: random.Random
    aggregates: Sequence[str] = ("last", "first", "min", "max", "mean", "ohlc", "delta")

    def check(self, first: int, last: int) -> None:
        """One page whose range lies about [first, last]."""
        draw = self.random
        period, interval, zone = draw.choice([*_SPANS]), draw.randint(1, 7), draw.choice(oracle.ZONES)
        span = _SPANS[period]
        if period == "min" and draw.random() < 0.5:
            # Wide buckets that begin within 15 minutes.
            interval, span = draw.randint(30, 5_000), _SPANS["d"]
        start = draw.randint(first, last)
        end = start + draw.randint(0, span)
        fill = draw.choice(["previous", "previous", "last", "none"])
        agg = draw.choice(self.aggregates)
        ids = draw.sample(sorted(self.known.series), draw.randint(1, len(self.known.series)))
        asked = None if draw.random() < 0.3 else ids
        begins, align = oracle.begins, "start"
        divided = {"min": 1440, "h": 24}.get(period, interval)
        if draw.random() < 0.3 and divided % interval == 0:
            begins, align = oracle.aligned_begins, "calendar"
        grid = begins(start, end, period, interval, zone)
        limit, offset = draw.randint(1, 250), draw.randint(0, max(0, len(grid) - 1))
        self.compare(start, end, period, interval, zone, limit, offset, fill, asked, grid, agg, align)

    def compare(
        self,
        start: int,
        end: int,
        period: str,
        interval: int,
        zone: str,
        limit: int,
        offset: int,
        fill: str,
        ids: list[str] | None,
        grid: list[int],
        agg: str = "last",
        align: str = "start",
    ) -> None:
        """One page against the oracle's."""
        query = {"start": start, "end": end, "period": period, "interval": interval, "tz": zone}
        query |= {"limit": limit, "offset": offset} | ({} if fill == "previous" else {"fill": fill})
        query |= ({} if agg == "last" else {"agg": agg}) | ({} if align == "start" else {"align": align})
        query |= {"asset_ids": ",".join(ids)} if ids else {}
        answer = self.client.simulate_get("/api/v1/assets/price-history", query_string=urlencode(query))
        data = answer.json["data"]
        assert data is not None, answer.json
        assert data["range"] == {"start": start, "end": end, "interval": {"unit": period, "value": interval}}
        count = len(grid) - 1
        last = min(end, grid[min(offset + limit, count)] - 1) if offset < count else end
        ends = [(seconds, bisect_right(seconds, last)) for seconds in self.known.seconds.values()]
        seen = [seconds[end - 1] for seconds, end in ends if end]
        assert answer.headers.get("as-of") == (f"prices=@{max(seen)}" if seen else None), query
        following = offset + limit if offset + limit < count else None
        assert data["pagination"] == {"interval_count": count, "next_offset": following}, query
        assert [series["asset"]["id"] for series in data["series"]] == (ids or sorted(self.known.series))
        for series in data["series"]:
            expected = self.known.page(series["asset"]["id"], grid, end, offset, limit, fill, agg)
            wrong = [pair for pair in zip(series["points"], expected, strict=True) if pair[0] != pair[1]]
            assert not wrong, (query, series["asset"]["id"], wrong[:3])
