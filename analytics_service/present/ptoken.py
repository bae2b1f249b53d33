"""The protocol token in responses: parameters, state and staking."""

from analytics_service.present.assets import CURRENT_ASSET_INFO
from analytics_service.present.renderings import (
    AMOUNT,
    DECIMAL,
    DURATION,
    INDEX,
    LARGE_NUMBER,
    TIME,
)
from analytics_service.present.shapes import Field, Many, Shape

STAKING_WEIGHTS = Shape(
    "StakingPoolWeights",
    "Multipliers of a stake in the pool.",
    (
        Field("reward_weight", DECIMAL, "Multiplier of rewards."),
        Field("gov_weight", DECIMAL, "Multiplier of votes."),
        Field("health_weight", DECIMAL, "Multiplier for the health of borrow accounts."),
        Field("flash_loan_weight", DECIMAL, "Multiplier for flash loans."),
    ),
)
POOL_STATE = Shape(
    "StakingPoolState",
    "What a staking pool holds.",
    (Field("total_bonded", AMOUNT, "Amount staked to the pool."),),
)
_IDENTITY = (
    Field("index", INDEX, "Position in the order of pools."),
    Field("duration", DURATION, "Length of the lockup."),
)
_PARAMS = Field("params", STAKING_WEIGHTS, "Multipliers.", source="")
_STATE = Field("state", POOL_STATE, "What the pool holds.", source="")
STAKING_POOL_PARAMS = Shape("StakingPoolParams", "Terms of a staking pool.", (*_IDENTITY, _PARAMS))
STAKING_POOL_STATE = Shape("StakingPoolSum", "A staking pool and what it holds.", (*_IDENTITY, _STATE))
STAKING_POOL = Shape("StakingPool", "A staking pool: its terms and what it holds.", (*_IDENTITY, _PARAMS, _STATE))

PTOKEN_PARAMS = Shape(
    "PtokenParams",
    "Parameters of the protocol token.",
    (
        CURRENT_ASSET_INFO,
        Field("emission_rate", AMOUNT, "Tokens emitted per year."),
        Field("tokens_per_weight", LARGE_NUMBER, "Weight-to-token scaling factor."),
        Field("staking_pools", Many(STAKING_POOL_PARAMS), "Terms of the staking pools.", source="pools"),
    ),
    asset="asset_id",
)
PTOKEN_STATE = Shape(
    "PtokenState",
    "Amounts of the protocol token.",
    (
        Field(
            "total_issued",
            AMOUNT,
            "Issued, locked or unlocked; includes initial balances and all claimed or claimable rewards.",
        ),
        Field("total_claimed", AMOUNT, "Claimed, locked or unlocked; excludes unclaimed rewards."),
        Field("total_locked", AMOUNT, "Locked; includes unlocks that are not claimed yet."),
        Field("total_supply", AMOUNT, "Total supply; includes locked and unissued tokens."),
        Field("staking", Many(STAKING_POOL_STATE), "What the staking pools hold.", source="pools"),
    ),
    asset="asset_id",
)
STAKING_GLOBAL_STATE = Shape(
    "StakingGlobalState",
    "State of all staking.",
    (
        Field("rewards_last_distributed", TIME, "Last distribution of rewards."),
        Field("stake_acc", DECIMAL, "Accumulator of emission rate over total reward weight over time."),
    ),
)
PTOKEN_STAKING = Shape(
    "PtokenStaking",
    "Staking of the protocol token.",
    (
        CURRENT_ASSET_INFO,
        Field("global_state", STAKING_GLOBAL_STATE, "State of all staking.", source=""),
        Field("pools", Many(STAKING_POOL), "The staking pools."),
    ),
    asset="asset_id",
)
