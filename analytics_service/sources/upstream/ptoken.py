"""The protocol token in upstream's answers."""

from analytics_service.market.kinds import Count, Index
from analytics_service.market.ptoken import Ptoken, StakingPool
from analytics_service.sources.upstream.fields import AnswerField
from analytics_service.sources.upstream.state import Asker


def read_ptoken(asker: Asker) -> Ptoken:
    """The protocol token with its staking pools."""
    params, state, staking = (asker.get(f"/ptoken/{part}").data for part in ("params", "state", "staking"))
    overall = staking["global_state"]
    return Ptoken(
        asset_id=params["asset_info"]["asset"].asset_id(),
        emission_rate=params["emission_rate"].whole(),
        tokens_per_weight=params["tokens_per_weight"].whole(),
        total_issued=state["total_issued"].whole(),
        total_claimed=state["total_claimed"].whole(),
        total_locked=state["total_locked"].whole(),
        total_supply=state["total_supply"].whole(),
        rewards_last_distributed=overall["rewards_last_distributed"].time(),
        stake_acc=overall["stake_acc"].decimal(),
        pools=tuple(_pool(pool) for pool in staking["pools"].items()),
    )


def _pool(pool: AnswerField) -> StakingPool:
    return pool["params"].record(
        StakingPool,
        index=pool["index"].whole(Index.limit),
        duration=pool["duration"].whole(Count.limit),
        total_bonded=pool["state"]["total_bonded"].whole(),
    )
