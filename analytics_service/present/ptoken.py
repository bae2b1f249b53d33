"""The protocol token in responses: parameters, state and staking."""

from analytics_service.market.ptoken import Ptoken, StakingPool
from analytics_service.present.assets import of_asset
from analytics_service.present.renderings import AMOUNT, DURATION, INDEX, LARGE_NUMBER, declared
from analytics_service.present.shapes import Field, Many, Shape

STAKING_WEIGHTS = Shape.of(
    "StakingPoolWeights",
    "Multipliers of a stake in the pool.",
    *declared(StakingPool, "reward_weight gov_weight health_weight flash_loan_weight"),
)
POOL_STATE = Shape.of("StakingPoolState", "What a staking pool holds.", *declared(StakingPool, "total_bonded"))
_IDENTITY = (
    Field("index", INDEX, "Position in the order of pools."),
    Field("duration", DURATION, "Length of the lockup."),
)
_PARAMS = Field("params", STAKING_WEIGHTS, "Multipliers.", "")
_STATE = Field("state", POOL_STATE, "What the pool holds.", "")
STAKING_POOL_PARAMS = Shape.of("StakingPoolParams", "Terms of a staking pool.", *_IDENTITY, _PARAMS)
STAKING_POOL_STATE = Shape.of("StakingPoolSum", "A staking pool and what it holds.", *_IDENTITY, _STATE)
STAKING_POOL = Shape.of("StakingPool", "A staking pool: its terms and what it holds.", *_IDENTITY, _PARAMS, _STATE)

PTOKEN_PARAMS = of_asset(
    "PtokenParams",
    "Parameters of the protocol token.",
    *declared(Ptoken, "emission_rate tokens_per_weight", tokens_per_weight=LARGE_NUMBER),
    Field("staking_pools", Many(STAKING_POOL_PARAMS), "Terms of the staking pools.", "pools"),
)
PTOKEN_STATE = Shape.of(
    "PtokenState",
    "Amounts of the protocol token.",
    Field(
        "total_issued",
        AMOUNT,
        "Issued, locked or unlocked; includes initial balances and all claimed or claimable rewards.",
    ),
    *declared(Ptoken, "total_claimed total_locked total_supply"),
    Field("staking", Many(STAKING_POOL_STATE), "What the staking pools hold.", "pools"),
    asset="asset_id",
)
STAKING_GLOBAL_STATE = Shape.of(
    "StakingGlobalState", "State of all staking.", *declared(Ptoken, "rewards_last_distributed stake_acc")
)
PTOKEN_STAKING = of_asset(
    "PtokenStaking",
    "Staking of the protocol token.",
    Field("global_state", STAKING_GLOBAL_STATE, "State of all staking.", ""),
    Field("pools", Many(STAKING_POOL), "The staking pools."),
)
