"""Reads events of addresses from tables: loans, repayments, deposits, liquidations and all other actions."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Literal

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.judging import NO_VALUE, first_reason, split_reasons, time_reason
from analytics_service.imports.layout import TIMES, column_of, field_of
from analytics_service.imports.names import AssetNames
from analytics_service.imports.reading import note_times
from analytics_service.imports.tables import Table, TableRules
from analytics_service.imports.times import TimeRules, TimeStyle, read_times
from analytics_service.market.addresses import parse_address
from analytics_service.market.assets import Asset
from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.instants import instant
from analytics_service.market.kinds import AMOUNT_LIMIT
from analytics_service.market.values import EXACT, LIMIT
from analytics_service.store.datasets.known_events import content_id

AmountUnit = Literal["units", "denom"]
# The usual names of the columns of each role.
ROLES: Mapping[str, Sequence[str]] = {
    "time": TIMES,
    "address": ("address", "account_address", "account", "user", "wallet", "borrower", "owner"),
    "action": ("action", "event", "event_type", "kind", "type", "transaction_type"),
    "asset": ("asset_id", "asset", "symbol", "ticker", "token"),
    "amount": ("amount", "amount_units", "amount_denom", "quantity"),
    "usd": ("usd", "amount_usd", "usd_value", "value_usd", "historic_value"),
    "tx": ("tx_hash", "tx", "hash", "transaction_hash"),
    "id": ("id", "event_id", "event_uuid", "uuid"),
    "account": ("account_index", "index"),
    "leg": ("leg",),
    "price": ("price_exact",),
    "contract": ("contract",),
    "destination": ("destination",),
}
# The columns of some roles that are taken if others have usual names, too.
_PREFERRED = {"asset": "asset_id", "usd": "usd_exact"}
_REQUIRED = ("time", "address", "action", "asset", "amount")
# What to do about a file without such a column.
_ELSE = {"action": "; if all events are of one action, say it, such as --action borrow"}
_WORDS = {
    "loan": Action.BORROW,
    "repay": Action.RETURN,
    "repayment": Action.RETURN,
    "repaid": Action.RETURN,
    "supply": Action.LEND,
    "liquidation": Action.LIQUIDATE,
    "liquidated": Action.LIQUIDATE,
}
_OPEN = {
    "deposit": (Action.LEND, Action.DEPOSIT_COLLATERAL),
    "withdraw": (Action.REDEEM, Action.WITHDRAW_COLLATERAL),
    "withdrawal": (Action.REDEEM, Action.WITHDRAW_COLLATERAL),
}
# Actions whose amounts some write with a minus sign.
_OUTWARD = (Action.RETURN, Action.REDEEM, Action.WITHDRAW_COLLATERAL, Action.LIQUIDATE)
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_MAX_USD = Decimal(10) ** 16
# The greatest number of digits of an amount, below 2^256, and of decimals.
_DIGITS = 160


@dataclass(frozen=True, slots=True)
class EventRequest:
    """Files of events to import, and what the caller says about them: names of columns by role, what words for actions
    mean, or the `action` of all, and the unit of amounts. `assets` is an assets file."""

    files: Sequence[Path]
    columns: Mapping[str, str] = field(default_factory=dict)
    actions: Mapping[str, Action] = field(default_factory=dict)
    action: Action | None = None
    times: TimeRules = field(default_factory=TimeRules)
    unit: AmountUnit | None = None
    assets: Path | None = None
    skip_invalid: bool = False
    tables: TableRules = field(default_factory=TableRules)


@dataclass(slots=True)
class EventFile:
    """A file of events that was read. `fields` are those of the roles that it has; amounts of `events` are in denom
    units. `unit` is that of its amounts, and `at` the present instant. Rows of lending without an amount are `empty`,
    not `read`."""

    table: Table
    fields: Mapping[str, str]
    rules: EventRequest
    at: datetime
    unit: AmountUnit | None
    events: list[Event] = field(default_factory=list)
    read: int = 0
    rejected: int = 0
    empty: int = 0
    kinds: dict[TimeStyle, tuple[int, str]] = field(default_factory=dict)
    ids: Counter[str] = field(default_factory=Counter)

    @property
    def ignored(self) -> list[str]:
        """The names of the columns that are not read."""
        return self.table.unread(self.fields.values())


class _Fault(Exception):
    """Why a row is rejected."""


def open_events(table: Table, rules: EventRequest, at: datetime) -> EventFile:
    """The file with its columns. ImportRefused if columns are missing, or if several could be meant."""
    unused = set(rules.columns) - set(ROLES)
    if unused:
        raise ImportRefused(f"Events have no {', '.join(sorted(unused))}; they have {', '.join(ROLES)}.")
    fields = {}
    for role, names in ROLES.items():
        named, preferred = rules.columns.get(role), _PREFERRED.get(role)
        if named is None and preferred and preferred in map(str.lower, table.columns):
            named = preferred
        option = f"--column {role}=COLUMN"
        if role in _REQUIRED and not (role == "action" and rules.action):
            fields[role] = field_of(table, role, named, names, option, f"Name it with {option}{_ELSE.get(role, '')}.")
        elif chosen := column_of(table, role, named, names, option):
            fields[role] = chosen
    title = table.title(fields["amount"]).lower()
    unit: AmountUnit | None = "denom" if title == "amount_denom" else "units" if title == "amount_units" else None
    return EventFile(table, fields, rules, at, rules.unit or unit)


def read_events(
    file: EventFile,
    names: AssetNames,
    assets: Mapping[str, Asset],
    reject: Callable[[pl.DataFrame], None],
    advance: Callable[[int], None],
) -> None:
    """Read all rows. `reject` is called with blocks of bad rows (line, the file's fields, reason) in order; `assets`
    are those that are registered or listed, by id.

    ImportRefused if times, or the unit of amounts, can be read in two ways.
    """
    rules = file.rules
    time = file.fields["time"]
    judged = pl.coalesce(first_reason(split_reasons()), time_reason(rules.times, file.at))
    for block, size in file.table.blocks():
        rows = file.table.filled(block)
        times = read_times(rows[time], rules.times)
        note_times(file, rows, time, times, rules.times)
        rows = rows.with_columns(times["second"], times["twice"], time=time)
        reasons: list[str | None] = []
        empty = 0
        columns = [rows[name].str.strip_chars().to_list() for name in file.fields.values()]
        faults = rows.select(judged).to_series()
        for fault, second, *cells in zip(faults, rows["second"], *columns, strict=True):
            try:
                if fault is None:
                    event = _event(file, dict(zip(file.fields, cells, strict=True)), second, names, assets)
                    empty += event is None
                    file.events += [event] if event else []
                reasons.append(fault)
            except _Fault as error:
                reasons.append(str(error))
        bad = rows.with_columns(pl.Series("reason", reasons, pl.String)).drop_nulls("reason")
        file.read += rows.height - empty
        file.empty += empty
        file.rejected += bad.height
        if bad.height:
            reject(file.table.rejected(bad))
        advance(size)


def _event(
    file: EventFile, row: Mapping[str, str], second: int, names: AssetNames, assets: Mapping[str, Asset]
) -> Event | None:
    """The event of a row; None if it is of lending, and without an amount."""
    code, fault = names.named(row["asset"])
    if code is None:
        raise _Fault(fault)
    asset_id = names.ids[code]
    try:
        address = parse_address(row["address"])
    except ValueError as error:
        raise _Fault(f"the address {error}") from None
    action = _action(row.get("action", ""), file.rules)
    row = {**row, **{role: _unsigned(row.get(role, ""), action) for role in ("amount", "usd")}}
    leg = _leg(action, row.get("leg", ""))
    asset = assets.get(asset_id)
    amount = _amount(file, row["amount"], asset)
    usd = _number(row["usd"], "the USD value", _MAX_USD) if row.get("usd") else None
    price = _number(row["price"], "the price", LIMIT) if row.get("price") else None
    index = _index(row["account"]) if row.get("account") else None
    event = Event(
        id=row.get("id", ""),
        action=action,
        asset_id=asset_id,
        address=address,
        at=instant(second),
        amount=amount,
        usd=usd,
        price=price,
        account_index=index,
        contract=row.get("contract", ""),
        destination=row.get("destination") or None,
        tx_hash=row.get("tx", ""),
        leg=leg,
    )
    if amount is None and event.is_lending:
        return None
    return event if event.id else _with_id(file, event)


def _with_id(file: EventFile, event: Event) -> Event:
    """The event with an id of its content. Rows that are alike in everything are events of their own."""
    identity = content_id(event)
    file.ids[identity] += 1
    number = file.ids[identity]
    return replace(event, id=identity if number == 1 else f"{identity};{number}")


def _unsigned(text: str, action: Action) -> str:
    """A number without the sign that what leaves an account or a debt may have, which the action says already; nothing
    in place of no value."""
    if text.lower() in NO_VALUE:
        return ""
    return text.removeprefix("-") if action in _OUTWARD else text


def _action(word: str, rules: EventRequest) -> Action:
    if rules.action is None:
        return _of_word(word, rules.actions)
    with suppress(_Fault):
        if _of_word(word, rules.actions) is not rules.action:
            raise ImportRefused(f"--action says that all events are {rules.action}, but one is {word!r}.")
    return rules.action


def _of_word(word: str, actions: Mapping[str, Action]) -> Action:
    name = word.lower().replace(" ", "_").replace("-", "_")
    for key in (name, name.removesuffix("s")):
        if key in actions:
            return actions[key]
        if key in _WORDS:
            return _WORDS[key]
        if key in set(Action):
            return Action(key)
        if key in _OPEN:
            first, second = _OPEN[key]
            raise _Fault(f"{word!r} may be {first} or {second}; say which with --action {word}={first}")
    raise _Fault(
        f"{word!r} is no action; say what it is with --action {word[:20]}=ACTION. Actions: {', '.join(Action)}"
    )


def _leg(action: Action, word: str) -> Leg | None:
    if action is not Action.LIQUIDATE:
        return None
    if word and word.lower() not in set(Leg):
        raise _Fault("the leg of a liquidation is neither debt nor collateral")
    return Leg(word.lower()) if word else Leg.DEBT


def _index(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise _Fault("the account index is not a whole number")
    return int(text)


def _number(text: str, what: str, limit: Decimal | None = None) -> Decimal:
    if text.startswith("-"):
        raise _Fault(f"{what} is negative")
    if len(text) > _DIGITS or not _NUMBER.fullmatch(text):
        raise _Fault(f"{what} is not a number; write 1234.5, without marks of thousands")
    number = Decimal(text)
    if limit is not None and number >= limit:
        raise _Fault(f"{what} is not below {limit:,}")
    return number


def _amount(file: EventFile, text: str, asset: Asset | None) -> int | None:
    """The amount in denom units. ImportRefused while nobody said in which unit the file has amounts."""
    if not text:
        return None
    number = _number(text, "the amount")
    if file.unit is None:
        raise ImportRefused(
            f"{file.table.path} has amounts in standard units, such as 1.5 ETH, or in denom units, of which "
            "10^decimals make a standard unit. Say which with --amounts units or --amounts denom."
        )
    if asset is None or not asset.is_described:
        symbol = "the asset" if asset is None else asset.symbol
        raise _Fault(f"nobody has stated the decimals of {symbol}; describe it with --assets or `import assets`")
    if file.unit == "units":
        number = EXACT.scaleb(number, asset.decimals_denom)
    if number != EXACT.to_integral_value(number):
        decimals = asset.decimals_denom if file.unit == "units" and asset else 0
        raise _Fault(f"the amount has more than the {decimals} decimals of the asset")
    if number >= AMOUNT_LIMIT:
        raise _Fault("the amount is not below 2^256")
    return int(number)
