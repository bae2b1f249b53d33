"""Assets and their prices as responses show them (interface section 2)."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from analytics_service.market.assets import Asset, split_id
from analytics_service.present.shapes import (
    NUMBER,
    PRICE,
    STRING,
    TIME,
    Field,
    Flags,
    Kind,
    Shape,
    Variants,
)


def asset_spec(asset_id: str) -> dict[str, object]:
    """The AssetSpec object of an asset id."""
    group, key = split_id(asset_id)
    return {"id": asset_id, "group": str(group), "group_key": key}


_SPEC_OF_ID = Kind(asset_spec)

ASSET_SPEC = Shape("AssetSpec", (Field("id", STRING), Field("group", STRING), Field("group_key", STRING)))
ASSET_METADATA = Shape(
    "AssetMetadata",
    (
        Field("decimals_denom", NUMBER),
        Field("decimals_display", NUMBER),
        Field("name", STRING),
        Field("symbol", STRING),
        Field("symbol_denom", STRING),
    ),
)
_KIND = Field("kind", STRING)
_ORIGIN = Field("origin_asset", _SPEC_OF_ID)
ASSET_CLASSIFICATION = Variants(
    "AssetClassification",
    (),
    key="kind",
    choices={
        "regular": Shape("Regular", (_KIND, Field("protocol_receipt_asset", _SPEC_OF_ID, source="receipt_asset"))),
        "protocol_receipt_token": Shape("ReceiptToken", (_KIND, _ORIGIN)),
        "liquid_staking_token": Shape("LiquidStakingToken", (_KIND, _ORIGIN)),
    },
)
_INFO_FIELDS = (
    Field("asset", ASSET_SPEC, source=""),
    Field("classification", ASSET_CLASSIFICATION, source=""),
    Field("metadata", ASSET_METADATA, source=""),
)
ASSET_INFO = Shape("AssetInfo", _INFO_FIELDS)
ASSET_PRICE = Shape("AssetPrice", (Field("price", PRICE), Field("last_updated_at", TIME)))


@dataclass(frozen=True, slots=True)
class Quote:
    """A price and the instant since which it holds."""

    price: Decimal
    last_updated_at: datetime


def asset_info(asset: Asset) -> dict[str, object]:
    """The AssetInfo object of an asset."""
    return ASSET_INFO.render(asset, Flags())


def priced_asset(asset: Asset, quote: Quote, flags: Flags) -> dict[str, object]:
    """An AssetInfo with the asset's price, as the price list shows it."""
    return {**ASSET_INFO.render(asset, flags), "price": ASSET_PRICE.render(quote, flags)}
