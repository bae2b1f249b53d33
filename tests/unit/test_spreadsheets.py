"""Text that a spreadsheet would run as a formula is told from all other text, in the same way everywhere."""

import csv
import io

import polars as pl

from analytics_service.market.spreadsheets import csv_field, escape_formula, is_formula

UNSAFE = [
    *("=1+1", "+A", "-A", "@A", "\tA", "\rA", "\nA", " =1", "  \t=1", "\u3000=1", "\u00a0@A", "-1+2", "-", "=", "-'1"),
    *("+1-cmd|' /C calc'!A0", "\uff1d1", "\uff0bA", "\uff0dA", "\uff20A"),
]
NUMBERS = ["-1", "-1.5e-7", "+3", " -1 000,5", "-5%"]
SAFE = ["", "A", "A=1", "1-2", "'=1", "native;eth", " ", "1.5", "a\tb", "Ä-"]


def test_a_formula_is_what_a_spreadsheet_would_run_and_a_number_stays_one() -> None:
    assert list(filter(is_formula, [*UNSAFE, *NUMBERS, *SAFE])) == [*UNSAFE, *NUMBERS]
    frame = pl.DataFrame({"text": [*UNSAFE, *NUMBERS, *SAFE, None]})
    expected = [*(f"'{text}" for text in UNSAFE), *NUMBERS, *SAFE, None]
    assert frame.select(escape_formula(pl.col("text"))).to_series().to_list() == expected


def test_a_field_of_csv_is_quoted_where_it_must_be() -> None:
    """Read back by Python."""
    texts = [*SAFE, "a,b", 'a"b', "a\nb", "a\rb", '"', "=1,2"]
    fields = pl.DataFrame({"text": texts}).select(csv_field(pl.col("text"))).to_series().to_list()
    assert fields[: len(SAFE)] == SAFE
    assert next(csv.reader(io.StringIO(",".join(fields), newline=""))) == [*texts[:-1], "'=1,2"]
