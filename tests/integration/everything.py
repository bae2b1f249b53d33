"""All that a store shows: views, histories with their rollups, and answers over HTTP. To compare two stores.

Left out is what says how values came, not what they are: versions, tags, the ledger and corrections.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import falcon.testing

from analytics_service.config.settings import Settings
from analytics_service.market.instants import DAY
from analytics_service.store.datasets.histories import HISTORIES
from analytics_service.store.schema import view_names
from tests import clickhouse
from tests.integration.routes import HISTORIES as HISTORY_ROUTES
from tests.integration.routes import Client, client_of
from tests.integration.test_as_of import ask, questions

# Views that tell how the values came.
HOW = {"corrections"}
# Of pages of history, in turn; the first has nearly all others.
AGGREGATES = ("ohlc", "mean")
_OBSERVATIONS = "SELECT * EXCEPT version FROM observation FINAL ORDER BY ALL"
# Rollups of a dataset that have ended, of which readers read.
_ROLLUPS = """
SELECT * EXCEPT (version, area), toString(area)
FROM rollup FINAL
WHERE history IN {histories:Array(String)}
  AND multiIf(width = '15min', start + 900, width = 'day', start + 86400, toDateTime(addMonths(start, 1), 'UTC'))
    <= (SELECT max(last_observed_at) + 1 FROM snapshot_head WHERE dataset = {dataset:String})
ORDER BY ALL
"""
_PARAMETER = re.compile(r"\{(\w+):\w+\}")
_HEADS = "SELECT dataset, max(at), max(last_observed_at) FROM snapshot_head GROUP BY dataset ORDER BY dataset"
Shown = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """At which second everything is asked, as of which other moments state is, and over which ranges of time pages of
    history are, by the period of their buckets."""

    now: int
    moments: Sequence[int]
    ranges: Mapping[str, tuple[int, int]]


def everything(settings: Settings, asked: Asked) -> Shown:
    """What a store shows, by what was asked."""
    return {**dict(_in_sql(settings, asked)), **answers(client_of(settings, now=asked.now), asked)}


def differences(left: Shown, right: Shown) -> list[str]:
    """What is not the same, in a line for each question, with the first rows that only one of them has."""
    assert left.keys() == right.keys(), left.keys() ^ right.keys()
    return [f"{name}: {_apart(left[name], right[name])}" for name in left if left[name] != right[name]]


def _apart(left: Any, right: Any) -> str:
    if not (isinstance(left, list) and isinstance(right, list)):
        return f"{_from_first_difference(str(left), str(right))}"
    only = [row for row in left if row not in right][:3], [row for row in right if row not in left][:3]
    return f"{len(left)} and {len(right)} rows; only the first has {only[0]}, only the second {only[1]}"


def _from_first_difference(left: str, right: str) -> str:
    place = next((n for n, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]), 0)
    begin = max(place - 200, 0)
    return f"{left[begin : place + 100]} <> {right[begin : place + 100]}"


def _rounded(value: Any) -> Any:
    """Sums of Float64 depend on the order of rows."""
    return float(f"{value:.12g}") if isinstance(value, float) else value


def _in_sql(settings: Settings, asked: Asked) -> Iterator[tuple[str, Any]]:
    with clickhouse.client(settings) as client:

        def rows(sql: str, **parameters: object) -> list[tuple[Any, ...]]:
            return [tuple(map(_rounded, row)) for row in client.query(sql, parameters=parameters).result_rows]

        yield "heads", rows(_HEADS)
        yield "observations", rows(_OBSERVATIONS)
        for dataset in {history.dataset: None for history in HISTORIES}:
            names = [history.name for history in HISTORIES if history.dataset == dataset]
            yield f"rollups of {dataset}", rows(_ROLLUPS, dataset=dataset, histories=names)
        ((address,),) = rows("SELECT min(address) FROM position_change")
        for view in sorted({*view_names()} - HOW):
            names = {*_PARAMETER.findall(str(client.command(f"SHOW CREATE VIEW {view}")))}
            for moment in asked.moments if "time" in names else asked.moments[:1]:
                values = {"time": moment, "asset_id": "native;uorb", "address": address}
                values |= {"start": moment - DAY, "end": moment, "factor": 3}
                arguments = ", ".join(f"{name} = '{values[name]}'" for name in sorted(names))
                called = f"{view}({arguments})" if names else view
                yield called, rows(f"SELECT * FROM {called} ORDER BY ALL")


def answers(client: Client, asked: Asked) -> Shown:
    """What the service answers, by what was asked."""
    answered = {}
    # The last question of each path is that with all variants.
    for question in {path: question for question, path in questions(client).items()}.values():
        for moment in (None, *asked.moments):
            answered[f"{question} at {moment}"] = _told(ask(client, question, moment))
    for path in HISTORY_ROUTES:
        for (period, (start, end)), agg in zip(asked.ranges.items(), cycle(AGGREGATES), strict=False):
            query = f"start={start}&end={end}&period={period}&agg={agg}&limit=1000&tz=Europe/London"
            answered[f"{path}?{query}"] = _told(client.simulate_get(path, query_string=query))
    return answered


def _told(answer: falcon.testing.Result) -> tuple[Any, ...]:
    assert answer.status_code < 500, answer.text
    return answer.status_code, answer.headers.get("as-of"), answer.json
