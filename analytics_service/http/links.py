"""The queries of pages, made from the query of a request."""

from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, urlencode


def replaced(query: str, changes: Mapping[str, object]) -> str:
    """A query with other values of some parameters. Those that have none are left out; new ones come last.

    Everything but letters, digits and `-._~` is percent-encoded, as it may have to be in a header.
    """
    given = {**dict(parse_qsl(query, keep_blank_values=True, max_num_fields=None)), **changes}
    return urlencode({name: value for name, value in given.items() if value is not None}, safe="", quote_via=quote)
