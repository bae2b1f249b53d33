"""Assets, their prices, swap routes, and events of addresses in responses."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from operator import itemgetter

from analytics_service.market.assets import Asset
from analytics_service.present.renderings import AMOUNT, NUMBER, PRICE, SPEC, STRING, TIME, USD, word
from analytics_service.present.shapes import Field, Many, OneOf, Rendering, Scope, Shape, within

ASSET_METADATA = Shape(
    "AssetMetadata",
    "How an asset is named and counted.",
    (
        Field("decimals_denom", NUMBER, "Decimal places between denom and standard amounts."),
        Field("decimals_display", NUMBER, "Decimals used when rendering text."),
        Field("name", STRING, "Full name."),
        Field("symbol", STRING, "Symbol."),
        Field("symbol_denom", STRING, "Denom symbol."),
    ),
)


def _claim_shape(name: str, kind: str, help: str) -> Shape:
    origin = Field("origin_asset", SPEC, "Asset that this one stands for.", optional=kind == "liquid_staking_token")
    return Shape(name, help, (Field("kind", word(kind), "Names the variant."), origin))


_RECEIPT = Field(
    "protocol_receipt_asset",
    SPEC,
    "Token that lenders of the asset receive.",
    source="receipt_asset",
    optional=True,
)
ASSET_CLASSIFICATION = OneOf(
    "AssetClassification",
    "What an asset is in the protocol.",
    key="kind",
    choices={
        "regular": Shape(
            "RegularAsset",
            "An asset that stands for itself.",
            (Field("kind", word("regular"), "Names the variant."), _RECEIPT),
        ),
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
ASSET_INFO = Shape("AssetInfo", "An asset.", _INFO_FIELDS)
ASSET_PRICE = Shape(
    "AssetPrice",
    "What an asset costs.",
    (
        Field("price", PRICE, "USD for one standard unit, from the protocol's price oracle."),
        Field("last_updated_at", TIME, "When the oracle last stated it."),
    ),
)
PRICED_ASSET = Shape(
    "PricedAsset",
    "An asset and what it costs.",
    (*within("asset", _INFO_FIELDS), Field("price", ASSET_PRICE, "Its price.", source="quote")),
)


# The AssetInfo of the scope's current asset.
CURRENT_ASSET_INFO = Field(
    "asset_info",
    Rendering(ASSET_INFO, lambda _, scope: ASSET_INFO.render(scope.current_asset, Scope())),
    "The asset.",
    source="",
)
_ACTION = Rendering(
    # The enumeration of the parameter `action`.
    {"allOf": [{"$ref": "#/components/schemas/Action"}]},
    lambda action, _: str(action),
    lambda action, _: action.replace("_", " ").capitalize(),
)
_UUID = Rendering({"type": "string", "format": "uuid"}, lambda uuid, _: uuid)
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

# Its record is an item of `SwapContract.routes`: a pair of source and targets.
SWAP_TARGETS = Shape(
    "SwapRouteTargets",
    "The denoms that one denom can be swapped to. These are plain chain denoms, not asset ids.",
    (
        Field("source", STRING, "Denom to swap from.", source=itemgetter(0)),
        Field("targets", Many(STRING), "Denoms it can be swapped to.", source=itemgetter(1)),
    ),
)


@dataclass(frozen=True, slots=True)
class Quote:
    """A price and the instant when the oracle last stated it."""

    price: Decimal
    last_updated_at: datetime


@dataclass(frozen=True, slots=True)
class PricedAsset:
    """An asset and its newest price."""

    asset: Asset
    quote: Quote
