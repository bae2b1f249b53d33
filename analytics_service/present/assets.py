"""Assets, their prices, swap routes, and events of addresses in responses."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from operator import itemgetter
from typing import Annotated

from analytics_service.market.assets import Asset
from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.kinds import PriceType, Time
from analytics_service.present import text
from analytics_service.present.json_schema import or_null, schema_of
from analytics_service.present.renderings import PRICE, RATIO, SPEC, STRING, declared, variant, word
from analytics_service.present.shapes import Field, Many, OneOf, Rendering, Scope, Shape, nested

# Changes by the request's text for the length of time; None without an earlier price.
Changes = Mapping[str, Decimal | None]


@dataclass(frozen=True, slots=True)
class Quote:
    """What an asset costs."""

    price: Annotated[Decimal, PriceType("USD for one standard unit, from the protocol's price oracle")]
    last_updated_at: Annotated[datetime, Time("When the oracle observed it")]
    changes: Changes | None = None


@dataclass(frozen=True, slots=True)
class PricedAsset:
    """An asset and its newest price."""

    asset: Asset
    quote: Quote


ASSET_METADATA = Shape.of(
    "AssetMetadata",
    "How an asset is named and counted.",
    *declared(Asset, "decimals_denom decimals_display name symbol symbol_denom"),
)


def _claim_shape(name: str, kind: str, help: str) -> Shape:
    origin = Field("origin_asset", SPEC, "Asset that this token stands for.", optional=kind == "liquid_staking_token")
    return Shape.of(name, help, variant(kind), origin)


_RECEIPT = Field(
    "protocol_receipt_asset", SPEC, "Token that lenders of the asset receive.", "receipt_asset", optional=True
)
ASSET_CLASSIFICATION = OneOf(
    "AssetClassification",
    "What an asset is in the protocol.",
    key=lambda asset, _: asset.kind,
    choices={
        "regular": Shape.of("RegularAsset", "An asset that stands for itself.", variant("regular"), _RECEIPT),
        "protocol_receipt_token": _claim_shape(
            "ProtocolReceiptToken", "protocol_receipt_token", "A claim on lent assets."
        ),
        "liquid_staking_token": _claim_shape("LiquidStakingToken", "liquid_staking_token", "A claim on staked assets."),
    },
)
_INFO_FIELDS = (
    Field("asset", SPEC, "The asset.", source="id"),
    Field("classification", ASSET_CLASSIFICATION, "What it is in the protocol.", source=""),
    Field("metadata", ASSET_METADATA, "How it is named and counted.", source=""),
)
ASSET_INFO = Shape.of("AssetInfo", "An asset.", *_INFO_FIELDS)
_CHANGES = Rendering(
    {"type": "object", "additionalProperties": or_null(schema_of(RATIO))},
    lambda changes, _: {span: None if part is None else text.plain(part) for span, part in changes.items()},
    lambda changes, _: {span: text.NONE if part is None else text.percent(part) for span, part in changes.items()},
    text_schema={"type": "object", "additionalProperties": {"type": "string"}},
)
ASSET_PRICE = Shape.of(
    "AssetPrice",
    "What an asset costs.",
    *declared(Quote),
    Field(
        "changes",
        _CHANGES,
        "Only with the parameter `changes`: the change over each length of time, as a fraction of the earlier price; "
        "null if there was none.",
        sometimes=True,
    ),
)
PRICED_ASSET = Shape.of(
    "PricedAsset",
    "An asset and what it costs.",
    *nested("asset", _INFO_FIELDS),
    Field("price", ASSET_PRICE, "Its price.", source="quote"),
)


CURRENT_ASSET_INFO = Field(
    "asset_info",
    Rendering(ASSET_INFO, lambda _, scope: ASSET_INFO.render(scope.current_asset, Scope())),
    "The asset.",
    source="",
)


def asset_fields(name: str, help: str, *fields: Field) -> Shape:
    """An object about one asset. Its record has the attribute `asset_id`."""
    return Shape.of(name, help, CURRENT_ASSET_INFO, *fields, asset="asset_id")


ACTION_SCHEMA: dict[str, object] = {"type": "string", "enum": [*Action]}
_ACTION = Rendering(
    # Events and parameters share this component.
    {"allOf": [{"$ref": "#/components/schemas/Action"}]},
    lambda action, _: str(action),
    lambda action, _: action.replace("_", " ").capitalize(),
)
_UUID = Rendering({"type": "string", "format": "uuid"}, lambda uuid, _: uuid)
ACCOUNT_EVENT = Shape.of(
    "AccountEvent",
    "What an address did.",
    Field("event_uuid", _UUID, "Identifies the event.", "uuid"),
    *declared(Event, "event_time=at action", action=_ACTION),
    Field(
        "asset",
        CURRENT_ASSET_INFO.of,
        "The asset of the amount. For an asset that the service does not know, only the id.",
        "",
    ),
    *declared(
        Event,
        "amount account_address=address account_index contract_address=contract destination_address=destination "
        "tx_hash historic_price=price historic_value=usd",
        historic_price=PRICE,
    ),
    Field(
        "leg",
        word(*Leg),
        "A liquidation is two events with the same tx_hash: debt (debt repaid) and collateral (collateral taken). Null "
        "for other actions.",
        optional=True,
    ),
    asset="asset_id",
)

# The record is an item of `SwapContract.routes`: a source denom and its targets.
SWAP_TARGETS = Shape.of(
    "SwapRouteTargets",
    "The denoms that one denom can be swapped to: chain denoms, not asset ids.",
    Field("source", STRING, "Denom to swap from.", source=itemgetter(0)),
    Field("targets", Many(STRING), "Denoms to swap to.", source=itemgetter(1)),
)
