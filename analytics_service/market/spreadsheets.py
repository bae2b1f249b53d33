"""Escapes text of CSV files that a spreadsheet would evaluate as a formula, by OWASP's list.

All CSV that leaves the service is escaped here. The patterns are valid for Python and Polars.
"""

import re

import polars as pl

# The last four are the full-width forms of the first four.
FORMULA = "^[ \u00a0\u3000]*[-=+@\uff1d\uff0b\uff0d\uff20\t\r\n]"
# Numbers are harmless, and stay numbers.
_NUMBER = "^ *[-+][0-9., ]+([eE][-+]?[0-9]+)?%? *$"


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would evaluate this text as a formula."""
    return re.search(FORMULA, text) is not None


def escape_formula(text: pl.Expr) -> pl.Expr:
    """Text for CSV: spreadsheets read a formula after a ' as plain text."""
    is_safe = ~text.str.contains(FORMULA) | text.str.contains(_NUMBER)
    return pl.when(is_safe | text.is_null()).then(text).otherwise(pl.concat_str(pl.lit("'"), text))


def csv_field(text: pl.Expr) -> pl.Expr:
    """Text as a field of CSV (RFC 4180), escaped, and quoted if necessary."""
    field = escape_formula(text)
    quoted = pl.format('"{}"', field.str.replace_all('"', '""', literal=True))
    return pl.when(field.str.contains('[",\r\n]')).then(quoted).otherwise(field)
