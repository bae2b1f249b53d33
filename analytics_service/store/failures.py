"""Failures of any kind, also of Polars. Not in errors.py, which every command imports, because this loads Polars."""

from polars.exceptions import PanicException

ANY_FAILURE = (Exception, PanicException)
"""Caught by threads that continue after a failure. Polars does not derive its panics from Exception."""
