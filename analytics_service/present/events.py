"""Events of an address in responses."""

from analytics_service.market.events import Action
from analytics_service.present.assets import CURRENT_ASSET_INFO
from analytics_service.present.kinds import AMOUNT, NUMBER, PRICE, STRING, TIME, USD
from analytics_service.present.shapes import Field, Kind, Shape

_ACTION = Kind(
    {"type": "string", "enum": [*Action]},
    lambda action, _: str(action),
    lambda action, _: action.replace("_", " ").capitalize(),
)
_UUID = Kind({"type": "string", "format": "uuid"}, lambda uuid, _: uuid)
ACCOUNT_EVENT = Shape(
    "AccountEvent",
    "What an address did.",
    (
        Field("event_uuid", _UUID, "Identifies the event.", source="uuid"),
        Field("event_time", TIME, "When it happened.", source="at"),
        Field("action", _ACTION, "What the address did."),
        Field(
            "asset",
            CURRENT_ASSET_INFO.of,
            "The asset of the amount. If the service does not know the asset, only its id is shown.",
            source="",
        ),
        Field("amount", AMOUNT, "The amount; null if the action moves nothing.", optional=True),
        Field("account_address", STRING, "The address.", source="address"),
        Field("account_index", NUMBER, "The borrow account, if the action concerns one.", optional=True),
        Field("contract_address", STRING, "The contract that carried it out.", source="contract"),
        Field("destination_address", STRING, "Where a send went.", source="destination", optional=True),
        Field("tx_hash", STRING, "The transaction. Both parts of a liquidation have the same."),
        Field("historic_price", PRICE, "USD for one standard unit when it happened.", source="price", optional=True),
        Field("historic_value", USD, "USD value of the amount when it happened.", source="usd", optional=True),
    ),
    asset="asset_id",
)
