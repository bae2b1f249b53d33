"""The position of an address in responses."""

from dataclasses import replace
from operator import attrgetter

from analytics_service.market.account_health import Health
from analytics_service.market.portfolio import SplitAmount
from analytics_service.market.positions import Balance, Holding, Position, Stake, Unbonding
from analytics_service.market.receipts import LenderClaim
from analytics_service.present.assets import CURRENT_ASSET_INFO, asset_fields
from analytics_service.present.markets import MARKET_RATE
from analytics_service.present.ptoken import STAKING_POOL, USER_UNLOCKS
from analytics_service.present.renderings import AMOUNT, HEALTH, NUMBER, SCALED, SPEC, declared, usd_on_request, variant
from analytics_service.present.shapes import Field, Many, OneOf, Shape, nested

_CLAIM = declared(LenderClaim)
_DEBT_RATE = Field("market_rate", MARKET_RATE, "What the debt costs.")
_NET_RATE = Shape.of(
    "NetRate",
    "Mean of interest rates, weighted by value; null if the price of one of the assets is unknown.",
    *(replace(field, optional=True) for field in MARKET_RATE.fields),
)
COLLATERAL_ITEM = asset_fields("UserCollateral", "Collateral in one asset.", *_CLAIM)
ACCOUNT_COLLATERAL = asset_fields(
    "UserAccountCollateral",
    "An account's collateral in one asset.",
    *_CLAIM,
    *nested("holding", declared(Holding, "allowable_ltv liquidation_ltv", bare=True)),
)
DEBT_ITEM = asset_fields("UserDebt", "Debt in one asset.", *_CLAIM, _DEBT_RATE)
_COLLATERALS = Field("collaterals", Many(COLLATERAL_ITEM), "Collaterals.")
_DEBTS = (
    Field("debts", Many(DEBT_ITEM), "Debts."),
    Field("debts_net_rate", _NET_RATE, "Mean rate of the debts."),
)
ACCOUNT_HEALTH = Shape.of(
    "AccountHealth",
    "Health of a borrow account: Infinity without debt, null if the price of a debt, collateral or stake is unknown.",
    *declared(Health, of=HEALTH),
    Field("result", HEALTH, "Sum of base and boost. Below 1 the account can be liquidated.", optional=True),
)
BORROW_ACCOUNT = Shape.of(
    "UserBorrowAccount",
    "A borrow account.",
    Field("index", NUMBER, "Position among the address's accounts."),
    *nested("totals", (replace(_COLLATERALS, of=Many(ACCOUNT_COLLATERAL)), *_DEBTS)),
    Field("health", ACCOUNT_HEALTH, "Health of the account."),
)
USER_BORROW = Shape.of(
    "UserBorrow",
    "What an address borrows.",
    Field("accounts", Many(BORROW_ACCOUNT), "The address's borrow accounts."),
    Field(
        "totals",
        Shape.of("UserBorrowTotals", "Sums over all borrow accounts.", _COLLATERALS, *_DEBTS),
        "Sums over all accounts.",
    ),
)

_RECEIPTS = (*declared(SplitAmount), Field("total", AMOUNT, "Sum of both."))
RECEIPT_AMOUNTS = Shape.of("ReceiptAmounts", "Amounts of receipt tokens.", *_RECEIPTS)
ORIGIN_EQUIVALENT = Shape.of(
    "OriginEquivalent",
    "Amounts of the lent asset that the receipt tokens redeem.",
    *tuple(replace(field, of=AMOUNT.text_only) for field in _RECEIPTS),
)
_LENT = (
    Field("receipt_amounts", RECEIPT_AMOUNTS, "Receipt tokens.", receipt=True),
    Field("origin_equivalent", ORIGIN_EQUIVALENT, "What the receipt tokens redeem."),
)
ASSET_POOL = asset_fields("UserLendPool", "A lent asset.", Field("market_rate", MARKET_RATE, "What it earns."), *_LENT)
USER_LEND = Shape.of(
    "UserLend",
    "What an address lends.",
    Field("asset_pools", Many(ASSET_POOL), "Lent assets.", "lends"),
    Field("net_rate", _NET_RATE, "Mean rate of the lent assets.", "lend_net_rate"),
)
USER_MARKETS = Shape.of(
    "UserMarkets",
    "What an address does in the markets.",
    Field("borrow", USER_BORROW, "Borrowing.", ""),
    Field("lend", USER_LEND, "Lending.", ""),
)

_ACCOUNT_CLAIM = Shape.of(
    "UserAccountClaim",
    "Collateral or debt of one borrow account in an asset.",
    Field("index", NUMBER, "The borrow account."),
    *nested("claim", _CLAIM),
)
_ASSET_COLLATERALS = Field("accounts", Many(_ACCOUNT_CLAIM), "Accounts with this collateral.", "collaterals")
_ASSET_DEBTS = Field("accounts", Many(_ACCOUNT_CLAIM), "Accounts with this debt.", "debts")
ASSET_COLLATERAL = asset_fields(
    "UserAssetCollateral", "Collateral in one asset, account by account.", _ASSET_COLLATERALS
)
ASSET_DEBT = asset_fields(
    "UserAssetDebt",
    "Debt in one asset, account by account.",
    replace(_DEBT_RATE, source=lambda asset: asset.debts[0].claim.market_rate),
    _ASSET_DEBTS,
)
MERGED_ASSET = asset_fields(
    "UserMergedMarket",
    "What an address has in all markets of one asset.",
    replace(_ASSET_COLLATERALS, name="borrow_collateral"),
    replace(_ASSET_DEBTS, name="borrow_debt"),
    Field("lend", Shape.of("UserMergedLend", "Amounts of a lent asset.", *_LENT), "Null if not lent.", optional=True),
)

WALLET_VALUES = OneOf(
    "WalletValues",
    "An amount in a wallet.",
    key=lambda balance, scope: "known" if balance.asset_id in scope.assets else "unknown",
    choices={
        "known": Shape.of(
            "KnownWalletValues",
            "An amount of an asset that the service knows.",
            variant("known"),
            CURRENT_ASSET_INFO,
            *declared(Balance, "amount"),
            Field("amount_scaled", SCALED, "The amount in standard units.", "amount"),
            asset="asset_id",
        ),
        "unknown": Shape.of(
            "UnknownWalletValues",
            "An amount of an asset that the service does not know.",
            variant("unknown"),
            *declared(Balance, "amount", bare=True),
        ),
    },
)
WALLET_BALANCE = Shape.of(
    "WalletBalance",
    "A wallet's balance of an asset.",
    Field("asset", SPEC, "The asset.", "asset_id"),
    Field("values", WALLET_VALUES, "The amount.", ""),
)
USER_WALLETS = Shape.of(
    "UserWallets",
    "What an address has in its wallet.",
    Field("balances", Many(WALLET_BALANCE), "The balances.", "position.wallet"),
    Field(
        "total_value",
        usd_on_request(attrgetter("wallet_value")),
        "USD value of all balances of known assets; null unless with_value is true, or if a price is unknown.",
        "",
        optional=True,
    ),
)

STAKE = Shape.of(
    "UserStake",
    "Protocol token staked on behalf of a borrow account.",
    *declared(Stake, "account_index amount cascade transition_at last_stake_acc"),
)
STAKED_POOL = Shape.of(
    "UserStakingPool",
    "An address's stakes in one pool.",
    Field("common", STAKING_POOL, "The pool.", "pool"),
    Field("amount_sum", AMOUNT, "Sum of the stakes."),
    Field("contents", Many(STAKE), "The stakes."),
    asset="asset_id",
)
UNBONDING = Shape.of("UserUnbonding", "Protocol token being unstaked.", *declared(Unbonding))
UNBONDINGS = Shape.of(
    "UserUnbondings",
    "All protocol token being unstaked.",
    Field("amount_sum", AMOUNT, "Sum of the amounts.", "unbonding_sum"),
    Field("contents", Many(UNBONDING), "The amounts.", "unbondings"),
    asset="asset_id",
)
USER_STAKING = asset_fields(
    "UserStaking",
    "An address's staking of the protocol token.",
    Field("bonding_sum", AMOUNT, "Sum of all stakes."),
    Field("pools", Many(STAKED_POOL), "Pools in which the address has stakes."),
    Field("unbonding", UNBONDINGS, "Amounts being unstaked.", ""),
    *nested("position", declared(Position, "unclaimed claimable_rewards claimable_unbonding")),
)
USER_POSITION = Shape.of(
    "UserPosition",
    "Everything that an address has.",
    Field("markets", USER_MARKETS, "Borrowing and lending.", "portfolio"),
    Field("wallets", USER_WALLETS, "The address's wallet.", "portfolio"),
    Field(
        "ptoken",
        Shape.of(
            "UserPtoken",
            "An address's protocol token.",
            Field("staking", USER_STAKING, "Staking.", "portfolio.staking"),
            Field("unlocks", USER_UNLOCKS, "Unlock arrangements."),
        ),
        "The address's protocol token.",
        "",
    ),
)
