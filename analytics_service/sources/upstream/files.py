"""The files that say which addresses are followed, and how upstream calls what the contract has neutral words for."""

import re
from collections.abc import Iterator, Mapping
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
        if not self.theirs:
            return {}
        ours = {theirs: word for word, theirs in self.theirs.items()}

        def translated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            members = {ours.get(name, name): value for name, value in pairs}
            if isinstance(kind := members.get("kind"), str):
                members["kind"] = ours.get(kind, kind)
            return members

        return {"object_pairs_hook": translated}


def read_names(file: Path | None) -> Names:
    """The names in a file of lines `ours = theirs`; none without a file. SettingError names each bad line."""
    theirs: dict[str, str] = {}
    bad: list[str] = []
    for number, line in _lines("ANALYTICS_UPSTREAM_NAMES", file):
        match = re.fullmatch(r"([\w-]+)\s*=\s*([\w-]+)", line)
        if not match:
            bad.append(f"line {number}: {line[:80]!r} is not of the form ptoken = <word of upstream>")
        elif match[1] not in NEUTRAL_WORDS:
            bad.append(f"line {number}: {match[1]} is none of {', '.join(NEUTRAL_WORDS)}")
        elif match[1] in theirs or match[2] in theirs.values():
            bad.append(f"line {number}: {line[:80]!r} names a word that another line has")
        else:
            theirs[match[1]] = match[2]
    _require_none("ANALYTICS_UPSTREAM_NAMES", file, bad)
    return Names(theirs)


def read_addresses(file: Path | None) -> tuple[str, ...]:
    """The addresses in a file, one a line, in lower case and without repeats; none without a file. SettingError names
    each bad line."""
    addresses: dict[str, None] = {}
    bad: list[str] = []
    for number, line in _lines("ANALYTICS_ADDRESSES_FILE", file):
        try:
            addresses[parse_address(line)] = None
        except ValueError as error:
            bad.append(f"line {number}: {line[:100]!r} {error}")
    _require_none("ANALYTICS_ADDRESSES_FILE", file, bad)
    return tuple(addresses)


def _lines(variable: str, file: Path | None) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, without comments, which begin with #, and empty lines."""
    if file is None:
        return
    try:
        lines = file.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingError(f"{variable}={file} cannot be read: {reason}.") from error
    for number, line in enumerate(lines, 1):
        if content := line.partition("#")[0].strip():
            yield number, content


def _require_none(variable: str, file: Path | None, bad: list[str]) -> None:
    if bad:
        more = f"; and {len(bad) - 20} more lines" if len(bad) > 20 else ""
        raise SettingError(f"{variable}={file} is not usable: {'; '.join(bad[:20])}{more}.")
