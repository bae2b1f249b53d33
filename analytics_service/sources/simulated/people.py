"""The users of the simulated protocol. Their addresses do not depend on the seed, so that documents can name them."""

from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from typing import Literal, NamedTuple

from analytics_service.market.assets import AssetKind, bech32_address
from analytics_service.market.instants import DAY, from_unix
from analytics_service.market.positions import SwapContract
from analytics_service.market.ptoken import Arrangement, MemberClass, ScheduleKind
from analytics_service.sources.simulated.terms import COLLATERALS, LAUNCH, LENT, TOKEN, UNITS
from analytics_service.sources.simulated.universe import ASSETS, LISTINGS, ORIGINS, UNIT, Draws, usd_price

USERS = 100
_PREFIX = "ptcl"
# Kinds of a user's amounts. A debt is in shares. A stake has its pool in place of an asset, and `earned` is the reward
# of a unit of weight when the stake last changed. An unbonding amount has the second of its end in place of an account.
# Rewards are unclaimed, then claimable, then claimed.
Of = Literal["wallet", "collateral", "debt", "stake", "earned", "unbonding", "unclaimed", "claimable", "claimed"]


class Key(NamedTuple):
    """The key of a user's amount: kind, account and asset."""

    of: Of
    account: int = 0
    asset_id: str = ""


class Wish(NamedTuple):
    """A user's plan for a turn: `act` names a method of `Turn`. `size` is the wanted amount of `key` in denom units, a
    third more or less; for receipt tokens, the amount that they redeem."""

    act: str
    key: Key = Key("wallet")
    size: int = 0


def contract_address(name: str) -> str:
    return bech32_address(_PREFIX, sha256(name.encode()).digest())


@lru_cache(maxsize=4_000)
def user_address(number: int) -> str:
    """The address of a user. One in 8 is hexadecimal."""
    digest = sha256(f"user {number}".encode()).digest()[:20]
    return f"0x{digest.hex()}" if number % 8 == 7 else bech32_address(_PREFIX, digest)


# No part of its position is empty.
RICH_ADDRESS = user_address(0)
# An address without a position.
EMPTY_ADDRESS = bech32_address(_PREFIX, sha256(b"nobody").digest()[:20])


@lru_cache(maxsize=4_000)
def profile(seed: str, number: int) -> tuple[int, dict[Key, int], list[Wish]]:
    """The mean seconds between a user's turns, its initial amounts, and its wishes, which it goes through in a cycle.
    The first turn for each wish comes within minutes. Users with unlock arrangements have more turns."""
    draws, address = Draws(f"{seed}|user|{number}"), user_address(number)
    savings = {asset_id: _units(seed, asset_id, draws.sized(5, 10)) for asset_id in draws.sample(LISTINGS, 2)}
    savings |= {"native;umystery": 123_456_789} if address == RICH_ADDRESS else {}
    unlocks = [Wish("unlock", Key("wallet", n)) for n, one in enumerate(ARRANGEMENTS) if one.address == address]
    pools = draws.sample("0123", 4 if unlocks else draws.pick((0, 0, 1, 2)))
    stakes = [Wish("stake", Key("stake", 0, pool), draws.sized(1_000, 10) * TOKEN) for pool in pools]
    plan, last = _plan(seed, draws, is_rich=address == RICH_ADDRESS), Wish("flash_loan" if number % 2 else "send")
    pace = DAY if unlocks else draws.between(12 * DAY, 36 * DAY)
    amounts = {Key("wallet", 0, asset_id): units for asset_id, units in savings.items()}
    return pace, amounts, [Wish("claim"), *unlocks, *plan, *stakes, last]


def _plan(seed: str, draws: Draws, *, is_rich: bool) -> Iterator[Wish]:
    """Wishes of markets, prerequisites first. The collaterals of an account have equal values, and so have its
    debts."""
    if is_rich:
        yield Wish("war_chest")
    receipts, usd = draws.sample(ORIGINS, len(ORIGINS) if is_rich else draws.below(4)), 100_000
    for receipt in receipts:
        yield Wish("lend", Key("wallet", 0, receipt), _units(seed, receipt, draws.sized(1_000, 8)))
    posted = [one for one, rules in COLLATERALS.items() if rules.enabled and (one not in ORIGINS or one in receipts)]
    for index in range(4 if is_rich else draws.pick((0, 1, 1, 1, 2, 3))):
        collaterals, debts = (list(assets)[3 * index : 3 * index + 3] for assets in (posted, LENT))
        if not is_rich:
            usd, collaterals = draws.sized(200, 10), draws.sample(posted, draws.between(1, 3))
            debts = draws.sample(LENT, draws.pick((0, 1, 1, 2)))
        for asset_id in collaterals:
            yield Wish("account", Key("collateral", index, asset_id), _units(seed, asset_id, usd))
        for asset_id in debts:
            yield Wish("account", Key("debt", index, asset_id), _units(seed, asset_id, usd * 2 // 3))


def _units(seed: str, asset_id: str, usd: int) -> int:
    """The denom units that an amount of USD buys at the launch."""
    return usd * UNIT * UNITS[asset_id] // usd_price(seed, ORIGINS.get(asset_id, asset_id), LAUNCH)


def _arrangement(user: int, index: int, member_class: MemberClass, tokens: int, *days: int | None) -> Arrangement:
    """A new arrangement. `days` after the launch: beginning, end (None for a lump sum), and expiry."""
    begins, ends, expires = (None if day is None else from_unix(LAUNCH + day * DAY) for day in days)
    kind = ScheduleKind.LINEAR if ends else ScheduleKind.LUMP_SUM
    terms = (kind, tokens * TOKEN, 0, begins or from_unix(LAUNCH), ends, expires)
    return Arrangement(
        user_address(user), index, member_class, *terms, None, contract_address("unlock admin"), None, 0, 0
    )


ARRANGEMENTS = [
    _arrangement(0, 0, MemberClass.TEAM, 20_000_000, 0, 1_460, 1_825),
    _arrangement(0, 1, MemberClass.TEAM, 500_000, 20, None, 730),
    _arrangement(3, 0, MemberClass.ADVISOR, 3_000_000, 0, 730, None),
    # Expires before all of it is unlocked.
    _arrangement(3, 1, MemberClass.ADVISOR, 1_000_000, 5, 45, 40),
    # Begins in 2035.
    _arrangement(3, 2, MemberClass.INVESTOR, 750_000, 3_652, None, None),
    _arrangement(3, 3, MemberClass.INVESTOR, 70_000_000, 0, 1_095, None),
]
# The arrangement whose locked amount is reclaimed, in the second turn of its wish.
RECLAIMED = 2

# A contract that swaps every denom for every other denom, and a contract that swaps to a single denom.
SWAP_CONTRACT = contract_address("swap")
_DENOMS = [asset.symbol_denom for asset in ASSETS if asset.kind is not AssetKind.RECEIPT]
SWAPS = [
    SwapContract(SWAP_CONTRACT, {source: tuple(one for one in _DENOMS if one != source) for source in _DENOMS}),
    SwapContract("0x" + "5a" * 20, {source: ("uusdt",) for source in _DENOMS if source != "uusdt"}),
]
