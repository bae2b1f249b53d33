"""The users of the simulated protocol. Their addresses are the same for every seed, so that they can be quoted."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b, sha256
from struct import Struct
from typing import NamedTuple, TypeVar

from analytics_service.market.addresses import bech32_address
from analytics_service.market.assets import AssetKind
from analytics_service.market.instants import DAY, HOUR, MINUTE
from analytics_service.market.positions import SwapContract
from analytics_service.sources.simulated.terms import COLLATERALS, ID_OF, LAUNCH, LENT
from analytics_service.sources.simulated.universe import ASSETS, LISTINGS

USERS = 340
_RICH = 0
# They borrow once, all that they may, too little for liquidators to care, and do not look after it.
_RECKLESS = range(12, 20)
_NEVER = 36_500 * DAY
_LENDERS = range(20, 20 + len(LENT))
_PREFIX = "ptcl"
# All users have joined by then.
_JOINING = 30 * DAY
# One in 8 addresses is hexadecimal.
_HEX_EVERY = 8
_ASSETS, _LENT = tuple(LISTINGS), tuple(LENT)
_COLLATERALS = tuple(asset_id for asset_id in LISTINGS if asset_id in COLLATERALS)
_Item = TypeVar("_Item")
_WORDS = Struct(">8Q")
# Assets that the service does not know.
_UNKNOWN = ("native;umystery", "token;0x" + sha256(b"unlisted").hexdigest()[:40])


class Draws:
    """Whole numbers drawn from a key by hashing: the same on every platform."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._block = 0
        self._words: list[int] = []

    def below(self, limit: int) -> int:
        """A number from 0 up to, but not including, the limit; all are equally likely."""
        if not self._words:
            self._words = list(_WORDS.unpack(blake2b(f"{self._key}|{self._block}".encode()).digest()))
            self._block += 1
        return self._words.pop() * limit >> 64

    def between(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """True with a probability in percent."""
        return self.below(100) < percent

    def sized(self, low: int, doublings: int) -> int:
        """A number from `low` up to `low` doubled several times. Each doubling is equally likely, so most are small."""
        size = low << self.below(doublings)
        return size + self.below(size)

    def pick(self, items: Sequence[_Item]) -> _Item:
        """A random item."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[_Item], count: int) -> tuple[_Item, ...]:
        """Several different items."""
        remaining = list(items)
        return tuple(remaining.pop(self.below(len(remaining))) for _ in range(min(count, len(remaining))))


class Wish(NamedTuple):
    """What a user does at each visit: `act` names a method of `Turn`, and `account` one of the accounts.

    `size` is in USD; percent of what may be borrowed for a debt, and of the user's receipt tokens for those posted;
    tokens for a stake, whose `asset_id` is the number of its pool.
    """

    act: str
    account: int = 0
    asset_id: str = ""
    size: int = 0


class Profile(NamedTuple):
    """A user, who joins at unix second `joined`, and visits the protocol every `period` seconds.

    `savings` are those brought along: USD by asset id, or denom units of assets that the service does not know.
    """

    address: str
    joined: int
    period: int
    wishes: tuple[Wish, ...]
    savings: tuple[tuple[str, int], ...] = ()


def contract_address(name: str) -> str:
    """The address of a contract of the protocol."""
    return bech32_address(_PREFIX, sha256(name.encode()).digest())


@lru_cache(maxsize=4_000)
def user_address(number: int) -> str:
    """The address of a user."""
    digest = sha256(f"user {number}".encode()).digest()[:20]
    return f"0x{digest.hex()}" if number % _HEX_EVERY == _HEX_EVERY - 1 else bech32_address(_PREFIX, digest)


@lru_cache(maxsize=4_000)
def profile(seed: str, number: int) -> Profile:
    """The properties of a user."""
    draws = Draws(f"{seed}|user|{number}")
    joined, period = LAUNCH + HOUR + draws.below(_JOINING - HOUR), draws.between(28 * DAY, 165 * DAY)
    savings = [(asset_id, draws.sized(5, 10)) for asset_id in draws.sample(_ASSETS, draws.between(1, 4))]
    savings += [(asset_id, draws.sized(1_000, 40)) for asset_id in _UNKNOWN if draws.chance(10)]
    if number == _RICH:
        joined, period = LAUNCH, 10 * DAY
        savings = [(ID_OF["PTK"], 12_000), (ID_OF["ETH"], 3_500), (ID_OF["USDC"], 900), (ID_OF["stORB"], 150)]
        savings += [(_UNKNOWN[0], 123_456_789), (_UNKNOWN[1], 5 * 10**18)]
        wishes = _RICH_WISHES
    elif number in _RECKLESS:
        collateral = ID_OF[draws.pick(("PTK", "ORB", "HEL", "TIDE"))]
        period, debt = _NEVER, draws.pick(_LENT)
        wishes = (Wish("collateral", 0, collateral, draws.between(300, 700)), Wish("debt", 0, debt, 150))
    else:
        wishes = tuple(_wishes(draws))
        if number in _LENDERS:
            joined = LAUNCH + (number - _LENDERS.start + 1) * 20 * MINUTE + draws.below(MINUTE)
            wishes = (Wish("lend", 0, _LENT[number - _LENDERS.start], 1_000_000), *wishes)
    claims = (Wish("claim_unbonded"), Wish("claim_rewards"))
    wishes = (*claims, *wishes, Wish("send"))
    return Profile(user_address(number), joined, period, wishes, tuple(savings))


def _wishes(draws: Draws) -> Iterator[Wish]:
    """Deposits, accounts and stakes: what must be there first comes first."""
    kind = draws.below(100)
    accounts = draws.pick((1, 1, 1, 2, 2, 3, 4)) if kind < 75 else 0
    if 10 <= kind < 60 or 75 <= kind < 92:
        for asset_id in draws.sample(_LENT, draws.between(1, 3)):
            yield Wish("lend", 0, asset_id, draws.sized(1_000, 8))
            receipt = LISTINGS[asset_id].asset.receipt_asset
            if accounts and receipt in COLLATERALS and draws.chance(40):
                yield Wish("collateral", draws.below(accounts), receipt, draws.pick((30, 50, 100)))
    for index in range(accounts):
        collaterals, usd = draws.sample(_COLLATERALS, draws.between(1, 3)), draws.sized(1_000, 9)
        for asset_id in collaterals:
            yield Wish("collateral", index, asset_id, usd // len(collaterals))
        debts = () if draws.chance(20) else draws.sample(_LENT, draws.between(1, 2))
        percent = draws.between(35, 75)
        for asset_id in debts:
            yield Wish("debt", index, asset_id, percent // len(debts))
    if draws.chance(40):
        for pool in draws.sample("0123", draws.between(1, 3)):
            index = draws.below(accounts or 1)
            yield Wish("stake", index, pool, draws.sized(1_000, 10))
            if draws.chance(30):
                yield Wish("cascade", index, pool)


def _rich_wishes() -> Iterator[Wish]:
    """Items of every kind, and a debt in every asset."""
    accounts = (
        (600_000, "HEL ETH stHEL", 18, "USDT USDC HUSD"),
        (400_000, "BTC stETH", 17, "HEL ORB ETH"),
        (300_000, "USDC PTK", 15, "BTC TIDE QRY"),
        (50_000, "ORB", 0, ""),
    )
    for symbol, usd in (("ETH", 20_000), ("USDT", 30_000), ("HEL", 15_000)):
        yield Wish("lend", 0, ID_OF[symbol], usd)
    yield Wish("collateral", 0, ID_OF["rETH"], 50)
    yield Wish("collateral", 1, ID_OF["rHEL"], 100)
    for index, (usd, collaterals, percent, debts) in enumerate(accounts):
        for symbol in collaterals.split():
            yield Wish("collateral", index, ID_OF[symbol], usd // len(collaterals.split()))
        for symbol in debts.split():
            yield Wish("debt", index, ID_OF[symbol], percent)
    for pool, index, tokens in (("0", 0, 40_000), ("1", 0, 25_000), ("2", 1, 60_000), ("3", 0, 80_000)):
        yield Wish("stake", index, pool, tokens)
        if pool in "12":
            yield Wish("cascade", index, pool)


_RICH_WISHES = tuple(_rich_wishes())
# Owes, lends, stakes and waits for unlocks: no part of the position is empty.
RICH_ADDRESS = user_address(_RICH)
# Has no position.
EMPTY_ADDRESS = bech32_address(_PREFIX, sha256(b"nobody").digest()[:20])

# A contract that swaps every denom for every other denom, and one that swaps only against two of them.
SWAP_CONTRACT = contract_address("swap")
_QUOTES = ("uusdt", "ahel")
_DENOMS = tuple(asset.symbol_denom for asset in ASSETS if asset.kind is not AssetKind.RECEIPT)
_PAIRS = {source: _DENOMS if source in _QUOTES else _QUOTES for source in _DENOMS}
SWAPS = tuple(
    SwapContract(
        address, {source: tuple(one for one in targets if one != source) for source, targets in routes.items()}
    )
    for address, routes in ((SWAP_CONTRACT, dict.fromkeys(_DENOMS, _DENOMS)), ("0x" + "5a" * 20, _PAIRS))
)
