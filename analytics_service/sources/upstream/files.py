"""The files that say which addresses are followed, and how upstream calls what the contract has neutral words for."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analytics_service.errors import SettingError
from analytics_service.market.addresses import parse_address

# The contract's stand-ins for words with the protocol's brand: names of fields, and the values of `kind`.
NEUTRAL_WORDS = ("ptoken", "hnative", "protocol_receipt_asset", "protocol_receipt_token")


@dataclass(frozen=True, slots=True)
class Names:
    """Upstream's words by ours. Without any, it uses ours."""

    theirs: Mapping[str, str] = field(default_factory=dict)

    def path(self, path: str) -> str:
        """A path of the contract as upstream has it."""
        return "/".join(self.theirs.get(segment, segment) for segment in path.split("/"))

    def reading(self) -> dict[str, Any]:
        """Arguments for json.loads, so that objects have our words."""
        ours = {theirs: word for word, theirs in self.theirs.items()}

        def translated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            members = {ours.get(name, name): value for name, value in pairs}
            if isinstance(kind := members.get("kind"), str):
                members["kind"] = ours.get(kind, kind)
            return members

        return {"object_pairs_hook": translated} if ours else {}


def read_names(file: Path | None) -> Names:
    """The names in a file of lines `ours = theirs`; none without a file. SettingError names each bad line."""
    theirs: dict[str, str] = {}

    def add(line: str) -> None:
        match = re.fullmatch(r"([\w-]+)\s*=\s*([\w-]+)", line)
        if not match:
            raise ValueError("is not of the form ptoken = <word of upstream>")
        if match[1] not in NEUTRAL_WORDS:
            raise ValueError(f"names none of {', '.join(NEUTRAL_WORDS)}")
        if match[1] in theirs or match[2] in theirs.values():
            raise ValueError("names a word that another line has")
        theirs[match[1]] = match[2]

    _read_lines("ANALYTICS_UPSTREAM_NAMES", file, add)
    return Names(theirs)


def read_addresses(file: Path | None) -> tuple[str, ...]:
    """The addresses in a file, one a line, in lower case and without repeats; none without a file. SettingError names
    each bad line."""
    addresses: dict[str, None] = {}
    _read_lines("ANALYTICS_ADDRESSES_FILE", file, lambda line: addresses.update({parse_address(line): None}))
    return tuple(addresses)


def _read_lines(variable: str, file: Path | None, add: Callable[[str], None]) -> None:
    """Add each line that is not empty, without its comment, which begins with #."""
    if file is None:
        return
    try:
        lines = file.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingError(f"{variable}={file} cannot be read: {reason}.") from error
    bad: list[str] = []
    for number, line in enumerate(lines, 1):
        try:
            if content := line.partition("#")[0].strip():
                add(content)
        except ValueError as error:
            bad.append(f"line {number}: {content[:100]!r} {error}")
    if bad:
        more = f"; and {len(bad) - 20} more lines" if len(bad) > 20 else ""
        raise SettingError(f"{variable}={file} is not usable: {'; '.join(bad[:20])}{more}.")
