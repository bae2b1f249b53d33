"""/api/v1/users/{address}/tx-history: what an address did."""

from collections.abc import Mapping
from typing import Any

from analytics_service.http import params
from analytics_service.http.envelope import success
from analytics_service.market.events import EventList, EventQuery
from analytics_service.present.events import ACCOUNT_EVENT
from analytics_service.present.shapes import Many
from analytics_service.resources.current import StatePath, flags_of, scope_of
from analytics_service.state.view import View


class TxHistory(StatePath):
    """What an address did, a page at a time; `count` is the number of all its events."""

    families = ("loans",)
    # Markets determine the prices of receipt tokens.
    valued_by = ("prices", "markets")
    path = (params.ADDRESS,)
    query = (*params.EVENTS, params.WITH_TEXT, params.WITH_VALUE)
    shape = Many(ACCOUNT_EVENT)

    def record(self, view: View, arguments: Mapping[str, Any]) -> EventList:
        """The list. EntityNotFound if prev_event_uuid names no event of the address."""
        return view.events(arguments["address"], _query(arguments))

    def body(self, record: EventList, view: View, arguments: Mapping[str, Any]) -> bytes:
        """The listed events, and how many there are."""
        return success(self.shape.render(record.events, scope_of(view, flags_of(arguments))), count=record.count)


def _query(arguments: Mapping[str, Any]) -> EventQuery:
    return EventQuery(
        arguments["limit"], arguments["prev_event_uuid"], arguments["sort_order"] == "asc", arguments["action"]
    )
