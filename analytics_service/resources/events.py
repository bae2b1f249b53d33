"""Lists of events: of one address, and of all addresses."""

from operator import attrgetter

from analytics_service.errors import EntityNotFound
from analytics_service.http import params
from analytics_service.http.declared_params import Param
from analytics_service.market.events import EventFilter, EventList, EventQuery
from analytics_service.market.kinds import TIME_LIMIT
from analytics_service.present.assets import ACCOUNT_EVENT
from analytics_service.present.shapes import Many
from analytics_service.resources.current import VALUED, StatePath
from analytics_service.resources.snapshots import Arguments
from analytics_service.state.view import View


def _events(view: View, arguments: Arguments) -> EventList:
    """A page of events. Raises EntityNotFound if `prev_event_uuid` names no event of the address, or if an asset has
    neither a definition nor events."""
    actions, assets, times = arguments["action"] or (), arguments["asset_ids"] or (), arguments["times"]
    end = times["end"] + 1 if "end" in times else TIME_LIMIT
    of = EventFilter(arguments["address"], times.get("start", 0), end, tuple(actions), tuple(assets))
    query = EventQuery(of, arguments["limit"], arguments["prev_event_uuid"], arguments["sort_order"] == "asc")
    events = view.events(query)
    unknown = [asset_id for asset_id in assets if asset_id not in view.assets]
    if unknown and not events.count:
        raise EntityNotFound(f"asset_ids: {unknown[0][:100]!r} names no asset.")
    return events


def _next(events: EventList, arguments: Arguments) -> dict[str, object]:
    return {"prev_event_uuid": events.events[-1].uuid} if events.has_more else {}


def _list(path: str, summary: str, of: tuple[Param, ...] = (), in_path: tuple[Param, ...] = ()) -> StatePath:
    return StatePath(
        path,
        summary,
        Many(ACCOUNT_EVENT, attrgetter("events")),
        _events,
        ("loans",),
        (*params.EVENTS, *of, *VALUED),
        in_path,
        # Prices of receipt tokens depend on markets.
        ("prices", "markets"),
        count=attrgetter("count"),
        next=_next,
    )


PATHS = (
    _list(
        "users/{address}/tx-history",
        "Events of an address, a page at a time; `count` is the number of its events that match.",
        in_path=(params.ADDRESS,),
    ),
    _list(
        "analytics/market/events",
        "Events of all addresses, a page at a time; `count` is the number of events that match.",
        of=(params.OF_ADDRESS,),
    ),
)
