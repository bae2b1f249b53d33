"""Opens the source that a spec names: `<name>` or `<name>:<rest>`, or `none`.

Sources are entry points of the group SOURCES. Each is a class or function that takes the rest ("" without one) and
returns a Source; its ValueError says what the rest must be.
"""

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

from analytics_service.config import SOURCES, parse_setting
from analytics_service.errors import SettingError
from analytics_service.sources.base import Source

NONE = "none"


def open_source(spec: str) -> Source | None:
    """The source of a spec, to be closed after use; None for `none`. SettingError says what is wrong with the spec."""
    try:
        parse_setting("source", spec)
        if spec == NONE:
            return None
        name, _, rest = spec.partition(":")
        return _opener(name)(rest)
    except ValueError as error:
        raise SettingError(f"{spec[:80]!r} is not a source: it {error}.") from None


def _opener(name: str) -> Callable[[str], Source]:
    found: tuple[EntryPoint, ...] = tuple(entry_points(group=SOURCES, name=name))
    if not found:
        raise SettingError(f"No installed package provides the source {name}. Install the service again.")
    try:
        opener: Callable[[str], Source] = found[0].load()
    except (ImportError, AttributeError) as error:
        raise SettingError(f"The source {name} ({found[0].value}) cannot be loaded: {error}.") from error
    return opener
