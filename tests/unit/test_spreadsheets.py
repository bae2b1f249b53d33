"""Text that a spreadsheet would run as a formula is told from all other text, in the same way everywhere."""

import polars as pl

from analytics_service.market.spreadsheets import escaped, escaped_column, is_formula

UNSAFE = [
    *("=1+1", "+A", "-A", "@A", "\tA", "\rA", "\nA", " =1", "  \t=1", "\u3000=1", "\u00a0@A", "-1+2", "-", "=", "-'1"),
    *("+1-cmd|' /C calc'!A0", "\uff1d1", "\uff0bA", "\uff0dA", "\uff20A"),
]
NUMBERS = ["-1", "-1.5e-7", "+3", " -1 000,5", "-5%"]
SAFE = ["", "A", "A=1", "1-2", "'=1", "native;eth", " ", "1.5", "a\tb", "Ä-"]


def test_a_formula_is_what_a_spreadsheet_would_run_and_a_number_stays_one() -> None:
    assert list(filter(is_formula, [*UNSAFE, *NUMBERS, *SAFE])) == [*UNSAFE, *NUMBERS]
    assert [escaped(text) for text in [*UNSAFE, *NUMBERS, *SAFE]] == [*(f"'{text}" for text in UNSAFE), *NUMBERS, *SAFE]


def test_a_column_is_escaped_as_text_is() -> None:
    frame = pl.DataFrame({"text": [*UNSAFE, *NUMBERS, *SAFE, None]})
    assert frame.select(escaped_column("text"))["text"].to_list() == [*map(escaped, [*UNSAFE, *NUMBERS, *SAFE]), None]
