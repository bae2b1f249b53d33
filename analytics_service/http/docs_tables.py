"""How to load a history into common tools: lines to copy, for a range that has data."""

from dataclasses import dataclass

# The history that the lines are about.
PATH = "/api/v1/assets/price-history"
# Otherwise Polars guesses the type from the first rows, which may have no values yet, or only whole numbers.
_FLOATS = 'schema_overrides={"v": pl.Float64}'


@dataclass(frozen=True, slots=True)
class Tool:
    """What to write or set in a tool. `text` introduces `lines`."""

    text: str
    lines: str


def tools(base: str, example: str, *, asks_for_keys: bool) -> list[Tool]:
    """The lines for a service at a scheme and host. `example` is the path and query of a page of the history."""
    url = f"{base}{example}"
    following = f"{base}{PATH}?start=${{__from:date:seconds}}&end=${{__to:date:seconds}}&period=auto&format=csv"
    in_polars, in_pandas = _with_key(url) if asks_for_keys else _without_key(url)
    return [
        Tool("In Polars:", f"import polars as pl\n{in_polars}"),
        Tool("In pandas, with `pyarrow`:", f"import pandas as pd\n{in_pandas}"),
        Tool(
            "In Grafana with the Infinity data source, type CSV; `time` is a Timestamp, `symbol` a String and `v` a "
            'Number, of which the transformation "Prepare time series" makes a line for each symbol:',
            following,
        ),
        Tool(
            "In Google Sheets, for a service that the internet reaches; Excel (Data, From Web) and LibreOffice (Sheet, "
            "External Links) take the address alone:",
            f'=IMPORTDATA("{url}&digits=6&format=csv")',
        ),
    ]


def _without_key(url: str) -> tuple[str, str]:
    """The lines that read a page, in Polars and in pandas."""
    return (
        f'prices = pl.read_csv("{url}&format=csv", {_FLOATS})',
        f'prices = pd.read_parquet("{url}&format=parquet")',
    )


def _with_key(url: str) -> tuple[str, str]:
    """The same with an API key."""
    return (
        "from urllib.request import Request, urlopen\n"
        f'page = Request("{url}&format=csv", headers={{"Authorization": "Bearer KEY"}})\n'
        f"prices = pl.read_csv(urlopen(page).read(), {_FLOATS})",
        f'prices = pd.read_parquet("{url}&format=parquet", storage_options={{"Authorization": "Bearer KEY"}})',
    )
