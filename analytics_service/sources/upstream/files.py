"""The files of followed addresses, and of upstream's words for the contract's neutral words."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from analytics_service.errors import SettingError
from analytics_service.market.assets import parse_address

_T = TypeVar("_T")
# The contract's neutral words for words with the protocol's brand: names of fields, and values of `kind`.
NEUTRAL_WORDS = ("ptoken", "hnative", "protocol_receipt_asset", "protocol_receipt_token")


class Names(dict[str, str]):
    """Upstream's words by ours; missing words are equal."""

    def path(self, path: str) -> str:
        """A path of the contract in upstream's words."""
        return "/".join(self.get(segment, segment) for segment in path.split("/"))

    def translated(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """The members of an object of upstream, in our words."""
        ours = {theirs: word for word, theirs in self.items()}
        members = {ours.get(name, name): value for name, value in pairs}
        if isinstance(kind := members.get("kind"), str):
            members["kind"] = ours.get(kind, kind)
        return members


def read_names(file: Path | None) -> Names:
    """The names in a file of lines `ours = theirs`; none without a file. SettingError names the first bad line."""
    return Names(_read_lines("ANALYTICS_UPSTREAM_NAMES", file, _parse_name))


def _parse_name(line: str) -> tuple[str, str]:
    ours, _, theirs = map(str.strip, line.partition("="))
    if ours not in NEUTRAL_WORDS or not re.fullmatch(r"[\w-]+", theirs):
        raise ValueError(f"must be <one of {', '.join(NEUTRAL_WORDS)}> = <word of upstream>")
    return ours, theirs


def read_addresses(file: Path | None) -> tuple[str, ...]:
    """The addresses in a file, one a line, in lower case and without repeats; none without a file. SettingError names
    the first bad line."""
    return tuple(dict.fromkeys(_read_lines("ANALYTICS_ADDRESSES_FILE", file, parse_address)))


def _read_lines(variable: str, file: Path | None, parse: Callable[[str], _T]) -> list[_T]:
    """The parsed lines of a file, without empty lines, and comments from # on."""
    try:
        lines = file.read_text("utf-8-sig").splitlines() if file else []
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise SettingError(f"{variable}={file} cannot be read: {reason}.") from error
    parsed = []
    for number, line in enumerate(lines, 1):
        if content := line.partition("#")[0].strip():
            try:
                parsed.append(parse(content))
            except ValueError as error:
                raise SettingError(f"{variable}={file}, line {number}: {content[:100]!r} {error}.") from None
    return parsed
