"""What an asset is."""

from dataclasses import dataclass
from enum import StrEnum


class AssetGroup(StrEnum):
    """Domain that an asset's key is unique in."""

    NATIVE = "native"
    TOKEN = "token"


class AssetKind(StrEnum):
    """Classification of an asset (interface section 2, AssetClassification)."""

    REGULAR = "regular"
    RECEIPT = "protocol_receipt_token"
    LIQUID_STAKING = "liquid_staking_token"


@dataclass(frozen=True, slots=True)
class Asset:
    """An asset's identity, metadata and classification.

    `origin_asset` and `receipt_asset` are asset ids: the asset a receipt or liquid-staking token
    stands for, and the receipt token of a regular asset. Amounts are whole denom units;
    10^decimals_denom of them make one standard unit.
    """

    group: AssetGroup
    group_key: str
    name: str
    symbol: str
    symbol_denom: str
    decimals_denom: int
    decimals_display: int
    kind: AssetKind = AssetKind.REGULAR
    origin_asset: str | None = None
    receipt_asset: str | None = None

    @property
    def id(self) -> str:
        """`<group>;<group_key>`, unique over all assets."""
        return f"{self.group};{self.group_key}"


def split_id(asset_id: str) -> tuple[AssetGroup, str]:
    """The group and key of an asset id. ValueError when it does not have the form of one."""
    group, separator, key = asset_id.partition(";")
    if not separator or not key:
        raise ValueError(f"{asset_id!r} is not of the form <group>;<group_key>")
    return AssetGroup(group), key


def asset_spec(asset_id: str) -> dict[str, str]:
    """The AssetSpec of an asset id (interface section 2): id, group and key. ValueError as of `split_id`."""
    group, key = split_id(asset_id)
    return {"id": asset_id, "group": str(group), "group_key": key}
