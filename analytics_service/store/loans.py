"""Lending events in the store."""

from collections.abc import Iterable

import polars as pl

from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.fields import row_of
from analytics_service.market.kinds import Amount, AssetId, Text, Time, Usd
from analytics_service.market.values import ZERO
from analytics_service.store.columns import Columns, encoded

EVENT: Columns = {
    "at": Time("Instant of the event, whole seconds"),
    "id": Text("Unique id of the event"),
    "kind": Text("What happened: borrow, repay, lend, redeem, flash_loan or liquidation"),
    "asset_id": AssetId("Asset id"),
    "address": Text("Address that acted, or that was liquidated"),
    "amount": Amount("Amount in denom units of the asset"),
    "usd": Usd("USD value of the amount at the time of the event"),
}
# Values of column `kind` by action. Of a liquidation, the event is the repaid debt.
KINDS = {
    Action.BORROW: "borrow",
    Action.RETURN: "repay",
    Action.LEND: "lend",
    Action.REDEEM: "redeem",
    Action.BORROW_FLASH_LOAN: "flash_loan",
    Action.LIQUIDATE: "liquidation",
}


def is_lending(event: Event) -> bool:
    """Whether an event belongs to lending. Some lending events are summed."""
    return event.action in KINDS and event.leg is not Leg.COLLATERAL


def lending_frame(events: Iterable[Event]) -> pl.DataFrame:
    """Lending events as a batch to insert, without `version`. Events of unknown value count as 0 USD."""
    rows = ({**row_of(event), "kind": KINDS[event.action], "usd": event.usd or ZERO} for event in events)
    return encoded(rows, EVENT)
