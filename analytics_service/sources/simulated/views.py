"""What the simulated protocol shows of its state at a second, as records of the domain."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from analytics_service.market.instants import instant
from analytics_service.market.markets import CollateralMarket, Market
from analytics_service.market.positions import Account, Balance, Holding, LendPosition, Position, Stake, Unbonding
from analytics_service.market.ptoken import Arrangement, Ptoken
from analytics_service.market.unlocks import unlock_amounts
from analytics_service.sources.simulated import token
from analytics_service.sources.simulated.people import user_address
from analytics_service.sources.simulated.state import Key, Of, State
from analytics_service.sources.simulated.terms import COLLATERALS, CONFIG, LENT, ORIGINS, in_force


def markets(state: State, second: int) -> Iterator[Market]:
    """Every market, in ascending order of asset id; before launch all are empty."""
    posted = state.sums(Of.COLLATERAL)
    for asset_id in sorted({*COLLATERALS, *LENT}):
        rules, amount = COLLATERALS.get(asset_id), posted[asset_id]
        lend, debt = state.pools[asset_id].markets(second) if asset_id in LENT else (None, None)
        collateral = CollateralMarket(in_force(rules, second), amount, amount) if rules else None
        yield Market(asset_id, lend, collateral, debt)


def ptoken(state: State, second: int) -> Ptoken:
    """The protocol token. Its pools hold the sums of all positions' stakes."""
    bonded = state.sums(Of.STAKE)
    kept = [unlock_amounts(arrangement, instant(second)) for arrangement in arrangements(state)]
    return Ptoken(
        asset_id=CONFIG.ptoken,
        emission_rate=token.EMISSION_RATE,
        tokens_per_weight=token.TOKENS_PER_WEIGHT,
        total_issued=token.issued(second),
        total_claimed=token.ISSUED_AT_LAUNCH + state.sums(Of.REWARDED).total(),
        total_locked=bonded.total()
        + state.sums(Of.UNBONDING).total()
        + sum(amounts.claimable + amounts.locked for amounts in kept),
        total_supply=token.TOTAL_SUPPLY,
        rewards_last_distributed=instant(second),
        stake_acc=_fraction(state.rewards.at(second).earned),
        pools=tuple(replace(pool, total_bonded=bonded[str(pool.index)]) for pool in token.POOLS),
    )


def arrangements(state: State) -> list[Arrangement]:
    """Every arrangement; the same agreements for every seed."""
    result = []
    for number, arrangement in enumerate(token.ARRANGEMENTS):
        member = state.users[token.AGREEMENTS[number].user]
        claimed_at, reclaimed_at = (
            instant(member[key]) if (key := Key(of, number)) in member else None
            for of in (Of.UNLOCKED_AT, Of.RECLAIMED_AT)
        )
        result.append(
            replace(
                arrangement,
                claimed=member.get(Key(Of.UNLOCKED, number), 0),
                last_claimed_at=claimed_at,
                reclaimed_at=reclaimed_at,
                staked=sum(amount for key, amount in member.items() if key.of == Of.STAKE),
                held=member.get(Key(Of.WALLET, 0, CONFIG.ptoken), 0),
            )
        )
    return result


def positions(state: State, second: int) -> Iterator[Position]:
    """The positions of all users who have joined."""
    for number, amounts in enumerate(state.users):
        if not amounts:
            continue
        accounts: dict[int, tuple[list[Holding], list[Holding]]] = {}
        lends: dict[str, list[int]] = {}
        wallet, stakes, unbondings, free = [], [], [], 0
        for (of, index, asset_id), amount in sorted(amounts.items()):
            if of in (Of.COLLATERAL, Of.DEBT):
                accounts.setdefault(index, ([], []))[of == Of.DEBT].append(Holding(asset_id, amount))
            if of == Of.WALLET:
                wallet.append(Balance(asset_id, amount))
            if of in (Of.COLLATERAL, Of.WALLET) and asset_id in ORIGINS:
                lends.setdefault(ORIGINS[asset_id], [0, 0])[of == Of.COLLATERAL] += amount
            if of == Of.UNBONDING and index > second:
                unbondings.append(Unbonding(amount, instant(index)))
            elif of == Of.UNBONDING:
                free += amount
            if of == Of.STAKE:
                moves, before = (
                    amounts.get(Key(Of.CASCADE, index, asset_id)),
                    amounts.get(Key(Of.EARNED, index, asset_id), 0),
                )
                moves_at = instant(moves) if moves else None
                stakes.append(Stake(int(asset_id), index, amount, moves is not None, moves_at, _fraction(before)))
        yield Position(
            user_address(number),
            tuple(Account(index, *map(tuple, sides)) for index, sides in sorted(accounts.items())),
            tuple(LendPosition(asset_id, *parts) for asset_id, parts in sorted(lends.items())),
            tuple(wallet),
            tuple(stakes),
            tuple(unbondings),
            amounts.get(Key(Of.UNCLAIMED), 0),
            amounts.get(Key(Of.CLAIMABLE), 0),
            free,
        )


def _fraction(of_units: int) -> Decimal:
    return Decimal(of_units).scaleb(-18)
