"""Writes the data dictionary and the list of examples into sql/README.md: `python -m tests.dictionary`."""

import tempfile
from contextlib import closing
from pathlib import Path

from analytics_service.config import Settings
from analytics_service.embedded.clickhouse import clickhouse
from analytics_service.store.connection import Store
from analytics_service.store.dictionary import data_dictionary
from analytics_service.store.migrations import migrate
from analytics_service.store.sql import scripts

_PAGE = """# SQL for researchers

What the service writes can be read in ClickHouse directly, under the names below. `migrations/` is the whole schema,
`queries/` is what the service itself runs, and `examples/` are questions to start from:

{examples}

Rows of a run count once the run stands in `snapshot`; it is written last. Tables keep a corrected row beside the old
one until ClickHouse merges them: read with `FINAL`, or take `argMax(column, version)`. Prices and rates are exact
decimals, amounts are whole denom units (`asset.decimals_denom` of them make a standard unit), all times are UTC.

## Data dictionary

{dictionary}"""


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
        page = _PAGE.format(examples="\n".join(examples), dictionary=data_dictionary(store))
    (Path(__file__).parents[1] / "sql" / "README.md").write_text(page, "utf-8")


if __name__ == "__main__":
    main()
