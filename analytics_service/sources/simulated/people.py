"""The users of the simulated protocol. Their addresses are the same for every seed, so that they can be quoted."""

from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from analytics_service.market.addresses import bech32_address
from analytics_service.market.assets import AssetKind
from analytics_service.market.instants import DAY, HOUR, instant
from analytics_service.market.positions import SwapContract
from analytics_service.market.ptoken import Arrangement, MemberClass, ScheduleKind
from analytics_service.sources.simulated.terms import COLLATERALS, LAUNCH, LENT, TOKEN
from analytics_service.sources.simulated.universe import ASSETS, ID_OF, LISTINGS, Draws

USERS = 340
_RICH = 0
# They borrow once, all that they may, too little for liquidators to care, and do not look after it.
_RECKLESS = range(12, 20)
_PREFIX = "ptcl"
# Symbols of what can be posted, and of what can be lent and borrowed.
_POSTED = [asset.symbol for asset in ASSETS if asset.id in COLLATERALS and COLLATERALS[asset.id].enabled]
_LENT = [asset.symbol for asset in ASSETS if asset.id in LENT]
# Assets that the service does not know.
_UNKNOWN = ("native;umystery", "token;0x" + sha256(b"unlisted").hexdigest()[:40])
_TEAM, _ADVISOR, _INVESTOR = MemberClass
# User, index and class; tokens; the days from launch on at which it begins, ends (a lump sum has none), and expires.
_AGREED: tuple[tuple[int, int, MemberClass, int, int, int | None, int | None], ...] = (
    (_RICH, 0, _TEAM, 20_000_000, 0, 1_460, 1_825),
    (_RICH, 1, _TEAM, 500_000, 20, None, 730),
    (3, 0, _TEAM, 15_000_000, 0, 1_460, None),
    (5, 0, _ADVISOR, 3_000_000, 0, 730, None),
    # Expires before all of it is unlocked.
    (6, 0, _ADVISOR, 1_000_000, 5, 45, 40),
    # Begins in 2035.
    (7, 0, _ADVISOR, 750_000, 3_652, None, None),
    (8, 0, _INVESTOR, 70_000_000, 0, 1_095, None),
    (11, 0, _INVESTOR, 8_000_000, 10, None, None),
)
# The users who have them.
MEMBERS = [user for user, *_ in _AGREED]
# The second at which the member of an arrangement leaves: from then on the rest is reclaimed.
LEAVES = {2: LAUNCH + 31 * DAY}


class Wish(NamedTuple):
    """What a user does at each visit: `act` names a method of `Turn`, and `account` one of the accounts.

    `size` is in USD, percent of what may be borrowed for a debt, and tokens for a stake, whose `asset_id` is the number
    of its pool.
    """

    act: str
    account: int = 0
    asset_id: str = ""
    size: int = 0


class Profile(NamedTuple):
    """When a user joins (a unix second), and how many seconds lie between visits.

    `savings` are those brought along: USD by asset id, or denom units of assets that the service does not know.
    """

    joined: int
    period: int
    savings: list[tuple[str, int]]
    wishes: list[Wish]


def contract_address(name: str) -> str:
    """The address of a contract of the protocol."""
    return bech32_address(_PREFIX, sha256(name.encode()).digest())


@lru_cache(maxsize=4_000)
def user_address(number: int) -> str:
    """The address of a user. One in 8 is hexadecimal."""
    digest = sha256(f"user {number}".encode()).digest()[:20]
    return f"0x{digest.hex()}" if number % 8 == 7 else bech32_address(_PREFIX, digest)


@lru_cache(maxsize=4_000)
def profile(seed: str, number: int) -> Profile:
    """The properties of a user. All have joined within a month."""
    draws = Draws(f"{seed}|user|{number}")
    joined, period = LAUNCH + HOUR + draws.below(29 * DAY), draws.between(30 * DAY, 250 * DAY)
    savings = [(asset_id, draws.sized(5, 10)) for asset_id in draws.sample(LISTINGS, draws.between(1, 4))]
    savings += [(asset_id, 123_456_789) for asset_id in _UNKNOWN if draws.chance(10) or number == _RICH]
    wishes = [Wish("unlock", index) for index, user in enumerate(MEMBERS) if user == number]
    if number == _RICH:
        joined, period = LAUNCH, 10 * DAY
        wishes += _rich_wishes()
    elif number in _RECKLESS:
        period, posted = 36_500 * DAY, draws.sample(("PTK", "ORB", "HEL", "TIDE"), 1)
        wishes += _account(0, draws.between(300, 700), posted, 150, draws.sample(_LENT, 1))
    else:
        period = 25 * DAY if wishes else period
        wishes += _wishes(draws)
    wishes.append(Wish("flash_loan" if number % 2 else "send"))
    return Profile(joined, period, savings, [Wish("claim"), *wishes])


def _wishes(draws: Draws) -> Iterator[Wish]:
    """Deposits, accounts and stakes: what must be there first comes first."""
    lent, accounts = draws.sample(_LENT, draws.between(0, 3)), draws.pick((0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 4))
    for symbol in lent:
        yield Wish("lend", 0, ID_OF[symbol], draws.sized(1_500, 8))
    posted = [symbol for symbol in _POSTED if symbol[0] != "r" or symbol[1:] in lent]
    for index in range(accounts):
        collaterals, usd = draws.sample(posted, draws.between(1, 3)), draws.sized(1_000, 9)
        debts = draws.sample(_LENT, draws.pick((0, 1, 1, 2, 2)))
        yield from _account(index, usd, collaterals, draws.between(35, 75), debts)
    for pool in draws.sample("0123", draws.pick((0, 0, 0, 1, 2, 3))):
        yield Wish("stake", draws.below(accounts or 1), pool, draws.sized(1_000, 10))


def _account(index: int, usd: int, collaterals: list[str], percent: int, debts: list[str]) -> Iterator[Wish]:
    """Collaterals worth the same, and debts of the same part of what may be borrowed."""
    for symbol in collaterals:
        yield Wish("collateral", index, ID_OF[symbol], usd // len(collaterals))
    for symbol in debts:
        yield Wish("debt", index, ID_OF[symbol], percent // len(debts))


def _rich_wishes() -> Iterator[Wish]:
    """Items of every kind, and a debt in every asset."""
    yield Wish("war_chest")
    for symbol, usd in (("ETH", 300_000), ("USDT", 30_000), ("HEL", 15_000)):
        yield Wish("lend", 0, ID_OF[symbol], usd)
    yield from _account(0, 600_000, ["HEL", "ETH", "stHEL", "rETH"], 54, ["USDT", "USDC", "HUSD"])
    yield from _account(1, 400_000, ["BTC", "stETH", "rHEL"], 51, ["HEL", "ORB", "ETH"])
    yield from _account(2, 300_000, ["USDC", "PTK"], 45, ["BTC", "TIDE", "QRY"])
    yield from _account(3, 50_000, ["ORB"], 0, [])
    for pool, index, tokens in (("0", 0, 40_000), ("1", 0, 25_000), ("2", 1, 60_000), ("3", 0, 80_000)):
        yield Wish("stake", index, pool, tokens)


# Owes, lends, stakes and waits for unlocks: no part of the position is empty.
RICH_ADDRESS = user_address(_RICH)
# Has no position.
EMPTY_ADDRESS = bech32_address(_PREFIX, sha256(b"nobody").digest()[:20])


# As they begin.
ARRANGEMENTS = [
    Arrangement(
        address=user_address(user),
        index=index,
        member_class=member_class,
        kind=ScheduleKind.LUMP_SUM if ends is None else ScheduleKind.LINEAR,
        amount=tokens * TOKEN,
        claimed=0,
        begins_at=instant(LAUNCH + begins * DAY),
        ends_at=None if ends is None else instant(LAUNCH + ends * DAY),
        expires_at=None if expires is None else instant(LAUNCH + expires * DAY),
        last_claimed_at=None,
        admin=contract_address("unlock admin"),
        reclaimed_at=None,
        staked=0,
        held=0,
    )
    for user, index, member_class, tokens, begins, ends, expires in _AGREED
]

# A contract that swaps every denom for every other denom, and one that swaps only against two of them.
SWAP_CONTRACT = contract_address("swap")
_DENOMS = tuple(asset.symbol_denom for asset in ASSETS if asset.kind is not AssetKind.RECEIPT)
_PAIRS = {source: _DENOMS if source in ("uusdt", "ahel") else ("uusdt", "ahel") for source in _DENOMS}
SWAPS = [
    SwapContract(address, {source: tuple(one for one in targets if one != source) for source, targets in pairs.items()})
    for address, pairs in ((SWAP_CONTRACT, dict.fromkeys(_DENOMS, _DENOMS)), ("0x" + "5a" * 20, _PAIRS))
]
