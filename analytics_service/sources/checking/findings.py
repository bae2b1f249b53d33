"""What there is to say about a source, and how to find values of wrong types or ranges, and answers that differ."""

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import partial
from typing import Any

from analytics_service.market.assets import AssetGroup
from analytics_service.market.misfits import listed, misfits, named

Records = Sequence[Any]
# The id of an asset in a text, and what stands in parentheses after it.
_ID = re.compile(rf"\b((?:{'|'.join(AssetGroup)});[^\s,()]*[^\s,().:;])(?: \(([^()]*)\))?")


class Level(StrEnum):
    """How serious a finding is: data is lost or wrong, data is probably wrong, or something is not shown."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with a source, and what to do, in one or two sentences."""

    level: Level
    message: str


error, warning, note = (partial(Finding, level) for level in Level)


def sentence(words: object) -> str:
    """The words of others, such as those of an exception, with a single full stop."""
    return f"{str(words).rstrip('. ')}."


def with_symbols(finding: Finding, symbols: Mapping[str, str]) -> Finding:
    """A finding with the symbols of assets, by id, before their ids."""

    def name(found: re.Match[str]) -> str:
        asset_id, more = found.groups()
        symbol = symbols.get(asset_id)
        return f"{symbol} ({', '.join(filter(None, (asset_id, more)))})" if symbol else found[0]

    return replace(finding, message=_ID.sub(name, finding.message))


def fitting(part: str, records: Records, of: Any, cost: str, told: set[Any]) -> Generator[Finding, None, Records]:
    """Yields what is wrong with the types or ranges of records, and what it costs, each cause once that was not `told`.
    Returns the records that can be stored."""
    causes: dict[tuple[str, str], list[str]] = {}
    fit: list[Any] = []
    for record in records:
        faults = list(misfits(record, of))
        for fault in faults:
            causes.setdefault(fault.cause, [fault.of(record)]).append(named(record))
        fit += [] if faults else [record]
    for cause, (first, _, *others) in causes.items():
        if (part, cause) not in told:
            same = f" The same of {listed(others)}." if others else ""
            yield error(f"{part}: {first}{same} {cost}".rstrip())
        told.add((part, cause))
    return fit


def difference(first: Records, second: Records) -> str:
    """How two answers differ, in words; empty if they have the same records, in any order."""
    earlier, later = ({named(record): record for record in records} for records in (first, second))
    for name in [*earlier, *later]:
        if (name in earlier) != (name in later):
            return f"{name} was {'there, and then was not' if name in earlier else 'not there, and then was'}"
        for field in fields(earlier[name]):
            was, now = (getattr(answer[name], field.name) for answer in (earlier, later))
            if was != now:
                return f"{field.name} of {name} was {was}, and then {now}"
    return ""
