"""Every declared object against the published interface, transcribed here field by field.

`fields` are name:type. The default type is string, `?` may be null, and `[X]` is a list. `text`, `value` and `percent`
list the keys of the variants; an object without any has no `extra`. Fields of `sometimes` may be missing.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from analytics_service.present.analytics import MARKET_STATE
from analytics_service.present.assets import ASSET_INFO, PRICED_ASSET
from analytics_service.present.events import ACCOUNT_EVENT
from analytics_service.present.markets import (
    COLLATERAL_LOOKUP,
    DEBT_LOOKUP,
    GLOBAL_CONFIG,
    LEND_LOOKUP,
    MERGED_MARKET,
)
from analytics_service.present.overview import (
    COLLATERAL_MARKETS,
    DEBT_MARKETS,
    LEND_MARKETS,
    OLDER_TVL,
    OVERVIEW,
    SUPPLY,
)
from analytics_service.present.positions import ASSET_COLLATERAL, ASSET_DEBT, MERGED_ASSET, USER_POSITION
from analytics_service.present.ptoken import PTOKEN_PARAMS, PTOKEN_STAKING, PTOKEN_STATE
from analytics_service.present.schema import components
from analytics_service.present.series import MULTI_SERIES, SINGLE_SERIES
from analytics_service.present.status import ALIVE, READY, STATUS
from analytics_service.present.swaps import SWAP_TARGETS
from analytics_service.present.unlocks import UNLOCKS_DISTRIBUTION

ROOTS = (
    ASSET_INFO,
    PRICED_ASSET,
    LEND_MARKETS,
    LEND_LOOKUP,
    COLLATERAL_MARKETS,
    COLLATERAL_LOOKUP,
    DEBT_MARKETS,
    DEBT_LOOKUP,
    MERGED_MARKET,
    GLOBAL_CONFIG,
    OVERVIEW,
    SUPPLY,
    OLDER_TVL,
    PTOKEN_PARAMS,
    PTOKEN_STATE,
    PTOKEN_STAKING,
    UNLOCKS_DISTRIBUTION,
    MARKET_STATE,
    SINGLE_SERIES,
    MULTI_SERIES,
    SWAP_TARGETS,
    USER_POSITION,
    ASSET_COLLATERAL,
    ASSET_DEBT,
    MERGED_ASSET,
    ACCOUNT_EVENT,
)
SCHEMAS: dict[str, Any] = components(ROOTS)


@dataclass(frozen=True)
class Object:
    """An object of the interface."""

    fields: str
    text: str | None = None
    value: str | None = None
    percent: str | None = None
    sometimes: str = ""


NINE = (
    "amount amount_claimed amount_claimable amount_unlocked amount_locked amount_reclaimed amount_expired "
    "amount_staked amount_held"
)
SIX = "amount claimed claimable locked expired reclaimed"
INFO = "asset_info:AssetInfo"
CLAIM = f"{INFO} principal shares"

CONTRACT = {
    "AssetSpec": Object("id group group_key"),
    "AssetMetadata": Object("decimals_denom:number decimals_display:number name symbol symbol_denom"),
    "RegularAsset": Object("kind protocol_receipt_asset:AssetSpec?"),
    "ProtocolReceiptToken": Object("kind origin_asset:AssetSpec"),
    "LiquidStakingToken": Object("kind origin_asset:AssetSpec?"),
    "AssetInfo": Object("asset:AssetSpec classification:AssetClassification metadata:AssetMetadata"),
    "PricedAsset": Object("asset:AssetSpec classification:AssetClassification metadata:AssetMetadata price:AssetPrice"),
    "AssetPrice": Object("price last_updated_at", text="price last_updated_at"),
    "MarketRate": Object("apr apy", text="apr apy"),
    "LendMarket": Object(f"{INFO} rate:MarketRate state:LendMarketState"),
    "LendMarketState": Object(
        "principal_sum receipt_total_supply redemption_ratio",
        text="principal_sum receipt_total_supply redemption_ratio",
        value="principal_sum price",
    ),
    "NewerLendMarket": Object(f"{INFO} rate:MarketRate state:NewerLendMarketState"),
    "NewerLendMarketState": Object(
        "principal receipt_total_supply redemption_ratio",
        text="principal receipt_total_supply redemption_ratio",
        value="principal price",
    ),
    "LendMarketData": Object("rate:MarketRate state:NewerLendMarketState"),
    "BorrowCollateralConfig": Object(
        "enabled:boolean allowable_ltv liquidation_ltv collateral_cap? min_discount max_discount",
        text="allowable_ltv collateral_cap liquidation_ltv max_discount min_discount",
        value="collateral_cap price",
    ),
    "BorrowCollateralState": Object(
        "balance collateral_sum", text="balance collateral_sum", value="balance collateral_sum price"
    ),
    "NewerBorrowCollateralState": Object("shares balance", text="shares balance", value="shares balance price"),
    "BorrowCollateralMarket": Object(f"{INFO} config:BorrowCollateralConfig state:BorrowCollateralState"),
    "NewerBorrowCollateralMarket": Object(f"{INFO} config:BorrowCollateralConfig state:NewerBorrowCollateralState"),
    "BorrowCollateralMarketData": Object("config:BorrowCollateralConfig state:NewerBorrowCollateralState"),
    "BorrowDebtConfig": Object(
        "enabled:boolean borrow_cap? borrow_halt_utilization interest_fee",
        text="borrow_cap borrow_halt_utilization interest_fee",
        value="borrow_cap price",
    ),
    "BorrowDebtState": Object(
        "principal_sum balance_sum time_last_distributed_interest utilization_accumulator",
        text="balance_sum principal_sum time_last_distributed_interest",
        value="balance_sum principal_sum price",
    ),
    "NewerBorrowDebtState": Object(
        "shares balance time_last_distributed_interest utilization_accumulator",
        text="balance shares time_last_distributed_interest",
        value="balance shares price",
    ),
    "BorrowDebtMarket": Object(f"{INFO} rate:MarketRate config:BorrowDebtConfig state:BorrowDebtState"),
    "NewerBorrowDebtMarket": Object(f"{INFO} rate:MarketRate config:BorrowDebtConfig state:NewerBorrowDebtState"),
    "BorrowDebtMarketData": Object("rate:MarketRate config:BorrowDebtConfig state:NewerBorrowDebtState"),
    "GlobalMarketConfig": Object(
        "time_window_nanos:number partial_liquidation_threshold target_liquidation_health liquidation_fee "
        "flash_loans_enabled:boolean flash_loan_fee staking_health_modifier stake_collateral_ratio "
        "stake_flash_loan_ratio dynamic_discount_width hnative:AssetSpec ptoken:AssetSpec",
        text="flash_loan_fee liquidation_fee stake_collateral_ratio stake_flash_loan_ratio "
        "staking_health_modifier time_window_nanos",
    ),
    "MarketSupplyPool": Object("balance shares", text="balance shares"),
    "BorrowCollateralMarketSupply": Object(
        "non_receipt:MarketSupplyPool receipt:MarketSupplyPool total:MarketSupplyPool"
    ),
    "LendMarketSupply": Object("principal", text="principal"),
    "Tvl": Object("tvl net_tvl", text="net_tvl tvl"),
    "OlderTvl": Object("collateral_value lend_value total_value", text="collateral_value lend_value total_value"),
    "MarketSupply": Object(
        "borrow_collateral:BorrowCollateralMarketSupply borrow_debt:MarketSupplyPool lend:LendMarketSupply tvl:Tvl"
    ),
    "NewerMarketOverview": Object(
        "borrow:NewerBorrowOverview lend:LendOverview global_config:GlobalMarketConfig tvl:Tvl"
    ),
    "NewerBorrowOverview": Object("collaterals:CollateralOverview debts:DebtOverview"),
    "CollateralOverview": Object("supply:BorrowCollateralMarketSupply contents:[NewerBorrowCollateralMarket]"),
    "DebtOverview": Object("supply:MarketSupplyPool contents:[NewerBorrowDebtMarket]"),
    "LendOverview": Object("supply:LendMarketSupply contents:[NewerLendMarket]"),
    "OlderMarketOverview": Object("borrow:BorrowOverview lend:[LendMarket] global_config:GlobalMarketConfig"),
    "BorrowOverview": Object("collaterals:[BorrowCollateralMarket] debts:[BorrowDebtMarket]"),
    "MergedMarket": Object(
        f"{INFO} lend:LendMarketData? borrow_collateral:BorrowCollateralMarketData? borrow_debt:BorrowDebtMarketData?"
    ),
    "PtokenParams": Object(
        f"{INFO} emission_rate tokens_per_weight:number staking_pools:[StakingPoolParams]",
        text="emission_rate",
        value="emission_rate price",
    ),
    "StakingPoolParams": Object("index:number duration:number params:StakingPoolWeights", text="duration index"),
    "StakingPoolWeights": Object("reward_weight gov_weight health_weight flash_loan_weight"),
    "PtokenState": Object(
        "total_issued total_claimed total_locked total_supply staking:[StakingPoolSum]",
        text="total_claimed total_issued total_locked total_supply",
        value="total_claimed total_issued total_locked total_supply price",
    ),
    "StakingPoolSum": Object("index:number duration:number state:StakingPoolState", text="duration index"),
    "StakingPoolState": Object("total_bonded", text="total_bonded", value="total_bonded price"),
    "PtokenStaking": Object(f"{INFO} global_state:StakingGlobalState pools:[StakingPool]"),
    "StakingGlobalState": Object("rewards_last_distributed stake_acc", text="rewards_last_distributed"),
    "StakingPool": Object(
        "index:number duration:number params:StakingPoolWeights state:StakingPoolState", text="duration index"
    ),
    "UnlocksDistribution": Object("groups:[UnlockGroup]"),
    "UnlockGroup": Object(
        f"member_class {NINE}",
        text=f"{NINE} member_class",
        value=f"{NINE} price",
        percent="amount_claimable amount_claimed amount_expired amount_locked amount_reclaimed amount_unlocked",
    ),
    "MarketAnalyticsState": Object(
        "borrower_active:number borrower_account_active:number lender_active:number flash_loan_volume_total "
        "loans_originated:LoansOriginated assets:[AssetInterest]"
    ),
    "LoansOriginated": Object("total_value breakdown:[AssetLoans]"),
    "AssetLoans": Object("asset:AssetSpec value"),
    "AssetInterest": Object("asset:AssetSpec lend_interest_paid"),
    "SingleSeriesHistoryPoints": Object("range:Range points:[HistoryPoint] pagination:Pagination"),
    "MultiSeriesHistoryPoints": Object("range:Range series:[Series] pagination:Pagination"),
    "HistoryColumns": Object("range:Range t:[number] series:[ColumnSeries] pagination:Pagination"),
    "Series": Object("asset:AssetSpec points:[HistoryPoint]"),
    "ColumnSeries": Object(
        "asset symbol? v:[string?] o:[string?] h:[string?] l:[string?] c:[string?] n:[number]",
        sometimes="asset symbol v o h l c n",
    ),
    "Point": Object("t:number v?"),
    "OhlcPoint": Object("t:number o? h? l? c? n:number"),
    "Range": Object("start:number end:number interval:Interval"),
    "Interval": Object("unit value:number"),
    "Pagination": Object("interval_count:number next_offset:number?"),
    "SwapRouteTargets": Object("source targets:[string]"),
    "UserPosition": Object("markets:UserMarkets wallets:UserWallets ptoken:UserPtoken"),
    "UserMarkets": Object("borrow:UserBorrow lend:UserLend"),
    "UserBorrow": Object("accounts:[UserBorrowAccount] totals:UserBorrowTotals"),
    "UserBorrowAccount": Object(
        "index:number collaterals:[UserCollateral] debts:[UserDebt] debts_net_rate:MarketRate health:AccountHealth"
    ),
    "UserBorrowTotals": Object("collaterals:[UserCollateral] debts:[UserDebt] debts_net_rate:MarketRate"),
    "UserCollateral": Object(CLAIM, text="principal shares", value="principal shares price"),
    "UserDebt": Object(f"{CLAIM} market_rate:MarketRate", text="principal shares", value="principal shares price"),
    "UserAccountClaim": Object(
        "index:number principal shares", text="principal shares", value="principal shares price"
    ),
    "UserAssetCollateral": Object(f"{INFO} accounts:[UserAccountClaim]"),
    "UserAssetDebt": Object(f"{INFO} market_rate:MarketRate accounts:[UserAccountClaim]"),
    "UserMergedMarket": Object(
        f"{INFO} borrow_collateral:[UserAccountClaim] borrow_debt:[UserAccountClaim] lend:UserMergedLend?"
    ),
    "UserMergedLend": Object("receipt_amounts:ReceiptAmounts origin_equivalent:OriginEquivalent"),
    "AccountHealth": Object("base boost result", text="boost result base"),
    "UserLend": Object("asset_pools:[UserLendPool] net_rate:MarketRate"),
    "UserLendPool": Object(
        f"{INFO} market_rate:MarketRate receipt_amounts:ReceiptAmounts origin_equivalent:OriginEquivalent"
    ),
    "ReceiptAmounts": Object(
        "held collateralized total", text="held collateralized total", value="held collateralized total price"
    ),
    "OriginEquivalent": Object("held collateralized total", text="held collateralized total"),
    "UserWallets": Object("balances:[WalletBalance] total_value?", text="total_value"),
    "WalletBalance": Object("asset:AssetSpec values:WalletValues"),
    "KnownWalletValues": Object(f"kind {INFO} amount amount_scaled", text="amount", value="amount price"),
    "UnknownWalletValues": Object("kind amount"),
    "UserPtoken": Object("staking:UserStaking unlocks:UserUnlocks"),
    "UserStaking": Object(
        f"{INFO} bonding_sum pools:[UserStakingPool] unbonding:UserUnbondings unclaimed claimable_rewards "
        "claimable_unbonding",
        text="bonding_sum unclaimed claimable_rewards claimable_unbonding",
        value="bonding_sum unclaimed claimable_rewards claimable_unbonding price",
    ),
    "UserStakingPool": Object(
        "common:StakingPool amount_sum contents:[UserStake]", text="amount_sum", value="amount_sum price"
    ),
    "UserStake": Object(
        "account_index:number amount cascade:boolean transition_at? last_stake_acc",
        text="amount transition_at",
        value="amount price",
    ),
    "UserUnbondings": Object("amount_sum contents:[UserUnbonding]", text="amount_sum", value="amount_sum price"),
    "UserUnbonding": Object("amount unlock_at", text="amount unlock_at", value="amount price"),
    "UserUnlocks": Object(
        "arrangements:[UserUnlockArrangement] totals:UserUnlockAmounts last_claimed_at?", text="last_claimed_at"
    ),
    "UserUnlockArrangement": Object(
        "begins_at schedule:UnlockSchedule last_claimed_at? expires_at? admin:UnlockAdmin amounts:UserUnlockAmounts",
        text="expires_at begins_at last_claimed_at",
    ),
    "UserUnlockAmounts": Object(
        SIX, text=SIX, value=f"{SIX} price", percent="claimed claimable locked expired reclaimed"
    ),
    "LinearUnlockSchedule": Object("kind duration:number ends_at", text="duration ends_at"),
    "LumpSumUnlockSchedule": Object("kind", text=""),
    "AccountEvent": Object(
        "event_uuid event_time action asset:AssetInfo amount? account_address account_index:number? contract_address "
        "destination_address? tx_hash historic_price? historic_value?",
        text="action amount event_time historic_price historic_value",
        value="amount price",
    ),
    "UnlockAdmin": Object("address issued_reclaim:boolean"),
}
ACTIONS = (
    "borrow_flash_loan return_flash_loan create_token_unlock reclaim_token_unlock liquidate borrow return lend redeem "
    "deposit_collateral withdraw_collateral claim_war_chest bond unbond claim_unbonded claim_token_unlock "
    "claim_rewards cascade send"
)
ALTERNATIVES = {
    "SingleSeriesHistory": {"SingleSeriesHistoryPoints", "HistoryColumns"},
    "MultiSeriesHistory": {"MultiSeriesHistoryPoints", "HistoryColumns"},
    "HistoryPoint": {"Point", "OhlcPoint"},
    "AssetClassification": {"RegularAsset", "ProtocolReceiptToken", "LiquidStakingToken"},
    "MarketOverview": {"NewerMarketOverview", "OlderMarketOverview"},
    "LendMarketList": {"LendOverview", "[LendMarket]"},
    "LendMarketLookup": {"NewerLendMarket", "LendMarket"},
    "BorrowCollateralMarketList": {"CollateralOverview", "[BorrowCollateralMarket]"},
    "BorrowCollateralMarketLookup": {"NewerBorrowCollateralMarket", "BorrowCollateralMarket"},
    "BorrowDebtMarketList": {"DebtOverview", "[BorrowDebtMarket]"},
    "BorrowDebtMarketLookup": {"NewerBorrowDebtMarket", "BorrowDebtMarket"},
    "UnlockSchedule": {"LinearUnlockSchedule", "LumpSumUnlockSchedule"},
    "WalletValues": {"KnownWalletValues", "UnknownWalletValues"},
}


def spelled(schema: dict[str, Any]) -> str:
    """A schema in the notation of the table."""
    if "$ref" in schema:
        return str(schema["$ref"].removeprefix("#/components/schemas/"))
    if "anyOf" in schema:
        (inner,) = (one for one in schema["anyOf"] if one != {"type": "null"})
        return f"{spelled(inner)}?"
    if isinstance(schema["type"], list):
        return spelled({**schema, "type": schema["type"][0]}) + "?"
    if schema["type"] == "array":
        return f"[{spelled(schema['items'])}]"
    return "number" if schema["type"] == "integer" else str(schema["type"])


def read(fields: str) -> dict[str, str]:
    """The table's fields by name."""
    parts = [field.partition(":") for field in fields.split()]
    return {name.removesuffix("?"): of or ("string?" if name.endswith("?") else "string") for name, _, of in parts}


def keys(schema: dict[str, Any] | None, sometimes: str = "") -> set[str] | None:
    """The properties of an object, all of which but those of `sometimes` are required and no others allowed."""
    if schema is None:
        return None
    assert set(schema["required"]) == set(schema["properties"]) - {*sometimes.split()}
    assert schema["additionalProperties"] is False
    return set(schema["properties"])


def test_every_object_is_in_the_table() -> None:
    assert set(SCHEMAS) == set(CONTRACT) | set(ALTERNATIVES)


@pytest.mark.parametrize("name", CONTRACT)
def test_fields(name: str) -> None:
    schema = SCHEMAS[name]
    keys(schema, CONTRACT[name].sometimes)
    declared = {field: spelled(one) for field, one in schema["properties"].items() if field != "extra"}
    assert declared == read(CONTRACT[name].fields)


@pytest.mark.parametrize("name", CONTRACT)
def test_extra(name: str) -> None:
    expected = {
        member: set(of.split())
        for member in ("text", "value", "percent")
        if (of := getattr(CONTRACT[name], member)) is not None
    }
    extra = SCHEMAS[name]["properties"].get("extra")
    assert keys(extra) == (set(expected) or None)
    for member, fields in expected.items():
        schema = extra["properties"][member]
        assert schema["type"] == ["object", "null"]
        if member == "text":
            assert keys(schema) == fields
        else:
            nested = schema["properties"]["extra"]
            assert keys(schema) == fields | {"extra"}
            assert keys(nested) == {"text"}
            assert keys(nested["properties"]["text"]) == fields


@pytest.mark.parametrize("name", ALTERNATIVES)
def test_alternatives(name: str) -> None:
    assert {spelled(one) for one in SCHEMAS[name]["oneOf"]} == ALTERNATIVES[name]


@pytest.mark.parametrize(
    ("name", "field", "words"),
    [
        ("AssetSpec", "group", ["native", "token"]),
        ("UnlockGroup", "member_class", ["team", "advisor", "investor"]),
        ("Interval", "unit", ["min", "h", "d", "w", "m", "y"]),
        ("RegularAsset", "kind", ["regular"]),
        ("ProtocolReceiptToken", "kind", ["protocol_receipt_token"]),
        ("LiquidStakingToken", "kind", ["liquid_staking_token"]),
        ("LinearUnlockSchedule", "kind", ["linear"]),
        ("LumpSumUnlockSchedule", "kind", ["lump_sum"]),
        ("KnownWalletValues", "kind", ["known"]),
        ("UnknownWalletValues", "kind", ["unknown"]),
        ("AccountEvent", "action", ACTIONS.split()),
    ],
)
def test_named_values(name: str, field: str, words: list[str]) -> None:
    assert SCHEMAS[name]["properties"][field]["enum"] == words


def test_operational_objects_share_no_name_with_these() -> None:
    assert set(components((*ROOTS, ALIVE, READY, STATUS))) > set(SCHEMAS)
