"""The users of the simulated protocol. Their addresses are the same for every seed, so that they can be quoted."""

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256

from analytics_service.market.addresses import bech32_address
from analytics_service.market.instants import DAY, HOUR
from analytics_service.sources.simulated.clock import LAUNCH
from analytics_service.sources.simulated.draws import Draws
from analytics_service.sources.simulated.terms import ID_OF, LENT, TERMS
from analytics_service.sources.simulated.universe import LISTINGS

USERS = 340
RICH, UNHEALTHY = 0, 1
_PREFIX = "ptcl"
# All users have joined by then.
_JOINING = 30 * DAY
# One in 8 addresses is hexadecimal.
_HEX_EVERY = 8

_POSTABLE = tuple(asset_id for asset_id in LENT if LISTINGS[asset_id].asset.receipt_asset in TERMS)
_COLLATERALS = tuple(asset_id for asset_id in LISTINGS if asset_id in TERMS and TERMS[asset_id].collateral)
_WALLET = tuple(LISTINGS)
# Assets that the service does not know.
_UNKNOWN = ("native;umystery", "token;0x" + sha256(b"unlisted").hexdigest()[:40])


@dataclass(frozen=True, slots=True)
class AccountPlan:
    """A borrow account with collaterals worth about `usd`, and debts of about `percent` of the allowed maximum."""

    index: int
    usd: int
    collaterals: tuple[str, ...]
    debts: tuple[str, ...]
    percent: int


@dataclass(frozen=True, slots=True)
class LendPlan:
    """A deposit worth about `usd`, of which `posted` percent are collateral of the account `account_index`."""

    asset_id: str
    usd: int
    posted: int
    account_index: int


@dataclass(frozen=True, slots=True)
class StakePlan:
    """A stake of about `tokens` protocol tokens in a pool, for an account."""

    pool: int
    account_index: int
    tokens: int
    cascade: bool


@dataclass(frozen=True, slots=True)
class Profile:
    """The constant properties of a user, who joins at unix second `joined` and trades every `period` seconds.

    Amounts in `wallet` are USD, those in `unknown` denom units. A `steady` user follows the plan exactly.
    """

    address: str
    joined: int
    period: int
    accounts: tuple[AccountPlan, ...] = ()
    lends: tuple[LendPlan, ...] = ()
    stakes: tuple[StakePlan, ...] = ()
    wallet: tuple[tuple[str, int], ...] = ()
    unknown: tuple[tuple[str, int], ...] = ()
    steady: bool = False


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
    if number == RICH:
        return _rich()
    if number == UNHEALTHY:
        return _unhealthy()
    draws = Draws(f"{seed}|user|{number}")
    joined = LAUNCH + HOUR + draws.below(_JOINING - HOUR)
    period = draws.between(8 * DAY, 60 * DAY)
    kind = draws.below(100)
    accounts = _accounts(draws) if kind < 75 else ()
    lends = _lends(draws, accounts) if 10 <= kind < 60 or 75 <= kind < 92 else ()
    return Profile(
        user_address(number),
        joined,
        period,
        accounts,
        lends,
        stakes=_stakes(draws, accounts) if draws.chance(40) else (),
        wallet=tuple((asset_id, draws.sized(5, 10)) for asset_id in draws.sample(_WALLET, draws.between(1, 4))),
        unknown=tuple((asset_id, draws.sized(1_000, 40)) for asset_id in _UNKNOWN if draws.chance(10)),
    )


def _accounts(draws: Draws) -> tuple[AccountPlan, ...]:
    return tuple(
        AccountPlan(
            index,
            usd=draws.sized(1_000, 9),
            collaterals=draws.sample(_COLLATERALS, draws.between(1, 3)),
            debts=() if draws.chance(20) else draws.sample(LENT, draws.between(1, 2)),
            percent=draws.between(35, 65),
        )
        for index in range(draws.pick((1, 1, 1, 2, 2, 3, 4)))
    )


def _lends(draws: Draws, accounts: tuple[AccountPlan, ...]) -> tuple[LendPlan, ...]:
    # Small compared with the borrowed amounts; see `markets.lent`.
    return tuple(
        LendPlan(
            asset_id,
            usd=draws.sized(150, 9),
            posted=draws.pick((0, 0, 50, 100)) if accounts and asset_id in _POSTABLE else 0,
            account_index=draws.below(len(accounts)) if accounts else 0,
        )
        for asset_id in draws.sample(LENT, draws.between(1, 3))
    )


def _stakes(draws: Draws, accounts: tuple[AccountPlan, ...]) -> tuple[StakePlan, ...]:
    return tuple(
        StakePlan(pool, draws.below(len(accounts) or 1), draws.sized(100, 10), draws.chance(30))
        for pool in draws.sample(range(4), draws.between(1, 3))
    )


def _rich() -> Profile:
    """Has items of every kind. Owes every asset from launch on, so that no market is ever without debt."""
    ids = ID_OF
    return Profile(
        user_address(RICH),
        joined=LAUNCH,
        period=5 * DAY,
        accounts=(
            AccountPlan(
                0,
                600_000,
                (ids["HEL"], ids["ETH"], ids["stHEL"]),
                (ids["USDT"], ids["USDC"], ids["HUSD"]),
                55,
            ),
            AccountPlan(1, 400_000, (ids["BTC"], ids["stETH"]), (ids["HEL"], ids["ORB"], ids["ETH"]), 50),
            AccountPlan(2, 300_000, (ids["USDC"], ids["PTK"]), (ids["BTC"], ids["TIDE"], ids["QRY"]), 45),
            AccountPlan(3, 50_000, (ids["ORB"],), (), 0),
        ),
        lends=(
            LendPlan(ids["ETH"], 20_000, 50, 0),
            LendPlan(ids["USDT"], 30_000, 0, 0),
            LendPlan(ids["HEL"], 15_000, 100, 1),
        ),
        stakes=(
            StakePlan(0, 0, 40_000, cascade=False),
            StakePlan(1, 0, 25_000, cascade=True),
            StakePlan(2, 1, 60_000, cascade=True),
            StakePlan(3, 0, 80_000, cascade=False),
        ),
        wallet=((ids["PTK"], 12_000), (ids["ETH"], 3_500), (ids["USDC"], 900), (ids["stORB"], 150)),
        unknown=((_UNKNOWN[0], 123_456_789), (_UNKNOWN[1], 5 * 10**18)),
    )


def _unhealthy() -> Profile:
    """Owes 95 % of its collateral in another stablecoin: 116 % of the 82 % allowed, where 88 % is liquidated."""
    account = AccountPlan(0, 10_000, (ID_OF["USDC"],), (ID_OF["USDT"],), 116)
    return Profile(user_address(UNHEALTHY), joined=LAUNCH + HOUR, period=10 * DAY, accounts=(account,), steady=True)


# Owes, lends, stakes and waits for unlocks: no part of the position is empty.
RICH_ADDRESS = user_address(RICH)
# Has a borrow account with a health below 1.
UNHEALTHY_ADDRESS = user_address(UNHEALTHY)
# Has no position.
EMPTY_ADDRESS = bech32_address(_PREFIX, sha256(b"nobody").digest()[:20])
# Lends the amounts that users do not, so that utilization has the value on which rates are based.
DESK_ADDRESS = contract_address("liquidity desk")
