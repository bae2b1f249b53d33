"""Opens the source that a spec names."""

from collections.abc import Callable

from analytics_service.config import parse_setting
from analytics_service.errors import SettingError
from analytics_service.sources.base import Source
from analytics_service.sources.simulated.source import SimulatedSource

_DEFAULT_SEED = "1"
# By the part of the spec before its colon; given the part after it.
_OPEN: dict[str, Callable[[str], Source | None]] = {
    "none": lambda _: None,
    "simulated": lambda seed: SimulatedSource(seed or _DEFAULT_SEED),
}


def open_source(spec: str) -> Source | None:
    """The source of a spec, or None for `none`. SettingError says which specs there are."""
    try:
        parse_setting("source", spec)
    except ValueError as error:
        raise SettingError(f"{spec[:80]!r} is not a source: it {error}.") from None
    kind, _, rest = spec.partition(":")
    return _OPEN[kind](rest)
