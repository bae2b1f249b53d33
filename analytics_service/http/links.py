"""The queries of pages, made from the query of a request."""

from collections.abc import Mapping

from falcon.uri import encode_value


def replaced(given: Mapping[str, object], changes: Mapping[str, object]) -> str:
    """A query with the parameters of another one, some with other values.

    Those that have none are left out; new ones come last. Everything but letters, digits and `-._~` is percent-encoded,
    as it may have to be in a header.
    """
    values = {**given, **changes}
    pairs = [(encode_value(name), encode_value(str(value))) for name, value in values.items() if value is not None]
    return "&".join([f"{name}={value}" for name, value in pairs])
