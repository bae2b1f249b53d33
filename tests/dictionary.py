"""Writes the data dictionary and the list of examples into sql/README.md: `python -m tests.dictionary`."""

import tempfile
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import clickhouse
from analytics_service.store.connection import Store
from analytics_service.store.migrations import migrate
from analytics_service.store.sql import scripts
from tests.clickhouse import client

_COLUMNS = """
SELECT t.name, t.comment, c.name, c.type, c.comment
FROM system.tables AS t
INNER JOIN system.columns AS c ON c.database = t.database AND c.table = t.name
WHERE t.database = currentDatabase() AND t.engine != 'MaterializedView'
ORDER BY t.name, c.position
"""
_PAGE = """# SQL for researchers

Everything that the service writes can be queried in ClickHouse, under the names below. `migrations/` is the whole
schema, `queries/` are the statements that the service itself runs, `embedded/` is the log of queries that the embedded
server keeps, and `examples/` are questions to start from:

{examples}

Histories have a view each, such as `price`, `lend_rate` and `tvl`: one row an observation, with corrections applied. A
condition on `asset_id` and `observed_at` reads no more of a view than of the table below it. All histories are in
`observation`, and `cell` sums them up by 15 minutes, UTC day and UTC month (`width`), so candles and means of years are
read from a few rows. A cell is complete once its family has an observation later than the cell. Until then the cell is
missing, or covers only a part of the observations: leave it out, as the examples do. Where a history ends, as an
imported one does, sum up the last quarter of an hour, day and month from the view. `tvl`, `net_tvl`, `deposits_usd`,
`collateral_usd`, `debt_usd` and `utilization` are at the prices in `market_price`, which were taken with each snapshot
of markets; those in `price` may be of other instants.

The other tables hold snapshots: what the markets, the protocol token, positions and swap contracts were at an instant.
A row of theirs with `observed_at` and `version` counts once `snapshot` lists a run with both, which a run does last.
One that died may have left rows without it, so ask for `(observed_at, version) IN (SELECT at, version FROM snapshot
WHERE family = 'markets')` where that matters. Tables may have a row twice, or a corrected one beside the old one,
until ClickHouse merges them: read with `FINAL`. `asset` keeps every definition on purpose: the newest is that with the
greatest `version`, as in the examples. `version` is when the run of a row began, in unix nanoseconds by the clock of
ClickHouse; for a cell it is when the cell was computed.

Prices and rates are exact decimals, amounts are whole denom units (10^`asset.decimals_denom` of them make a standard
unit), and all times are UTC. `FORMAT Parquet` keeps decimals exact, but writes amounts as bytes: select
`toString(amount)`. JSON formats write decimals as bare numbers, which most readers make floats of; `SETTINGS
output_format_json_quote_decimals = 1` quotes them.

Tables with `_staging_` in their names belong to an import or a backfill that is still writing; leave them alone.

A new history needs no table: it is one entry in `analytics_service/store/histories.py`, and `migrate` makes its view.

## Data dictionary

{dictionary}"""


def data_dictionary(settings: Settings) -> str:
    """The meaning of every table and column of a database, from the comments of its schema, as Markdown."""
    lines: list[str] = []
    with client(settings) as own:
        rows = own.query(_COLUMNS).result_rows
    for (table, comment), columns in groupby(rows, itemgetter(0, 1)):
        lines += ["", f"### {table}", "", f"{comment}.", "", "| column | type | meaning |", "|---|---|---|"]
        lines += [f"| `{name}` | `{kind}` | {meaning} |" for _, _, name, kind, meaning in columns]
    return "\n".join(lines).strip() + "\n"


def main() -> None:
    """Generate from an embedded server's schema and the examples' first lines."""
    examples = [
        f"- [`{f.name}`](examples/{f.name}): {f.read_text('utf-8').splitlines()[0].removeprefix('-- ')}"
        for f in scripts("examples")
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        clickhouse(Settings(data_dir=Path(folder)), "dictionary") as settings,
        closing(Store(settings)) as store,
    ):
        migrate(store)
        page = _PAGE.format(examples="\n".join(examples), dictionary=data_dictionary(settings))
    (Path(__file__).parents[1] / "sql" / "README.md").write_text(page, "utf-8")


if __name__ == "__main__":
    main()
