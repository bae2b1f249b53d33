"""A small lending protocol whose state is a plain function of time, and that is not simulated.

What it answers has the ids of the routes in `routes.py`, so that all of them answer 200.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

from analytics_service.market.assets import Asset, AssetGroup, AssetKind
from analytics_service.market.decimals import usd_value
from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.instants import DAY, from_unix, unix_second
from analytics_service.market.markets import (
    CollateralConfig,
    CollateralMarket,
    DebtConfig,
    DebtMarket,
    GlobalConfig,
    LendMarket,
    Market,
)
from analytics_service.market.positions import Account, Balance, Holding, LendPosition, Position, Stake, SwapContract
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, Ptoken
from analytics_service.sources.base import Source
from analytics_service.sources.simulated import RICH_ADDRESS, SWAP_CONTRACT
from analytics_service.sources.simulated.universe import ID_OF
from tests.integration.handmade import ARRANGEMENTS, CONFIG, PTOKEN

ETH, USDC, ORB, PTK, RETH = (ID_OF[symbol] for symbol in ("ETH", "USDC", "ORB", "PTK", "rETH"))
_UNITS = {ETH: 10**18, USDC: 10**6, ORB: 10**6, PTK: 10**6, RETH: 10**18}
_USD = {ETH: 3000, USDC: 1, ORB: 8, PTK: Decimal("0.25")}
_YIELD = Decimal("0.02")
_USERS = (RICH_ADDRESS, "0x" + "a" * 40, "0x" + "b" * 40)
# Seconds since its first event, and between two events of the past and of the present.
AGE = 200 * DAY
RARELY, OFTEN = 21_600, 10


def _asset(asset_id: str, symbol: str, **links: object) -> Asset:
    group, _, key = asset_id.partition(";")
    decimals = len(str(_UNITS[asset_id])) - 1
    plain = Asset(AssetGroup(group), key, symbol, symbol, symbol.lower(), decimals, 4)
    return replace(plain, **links)  # type: ignore[arg-type]


ASSETS = (
    _asset(ETH, "ETH", receipt_asset=RETH),
    _asset(USDC, "USDC"),
    _asset(ORB, "ORB"),
    _asset(PTK, "PTK"),
    _asset(RETH, "rETH", kind=AssetKind.RECEIPT, origin_asset=ETH),
)


def wave(second: int, salt: int, size: int = 1000) -> int:
    """A number from 0 to below `size` that changes every ten seconds."""
    return (second // 10 * 7919 + salt * 104_729) // 7 % size


def usd(asset_id: str, second: int) -> Decimal:
    """The price of an asset at a second, within a tenth of its usual one."""
    return _USD[asset_id] * Decimal(900 + wave(second, len(asset_id), 200)) / 1000


def lend_apr(asset_id: str, second: int) -> Decimal:
    """The rate that lenders of an asset earn."""
    return _YIELD + Decimal(wave(second, len(asset_id))) / 10**5


@dataclass(frozen=True)
class Lending(Source):
    """The protocol. From the second `live` on, something happens every ten seconds.

    `quoted` are factors of what its oracle states, though not of the values of events, and `size` is that of all
    balances: mistakes to be corrected.
    """

    live: int
    spec: str = "lending"
    quoted: Mapping[str, Decimal] = field(default_factory=dict)
    size: int = 1
    may_hang = False

    def assets(self, at: datetime) -> Sequence[Asset]:
        return ASSETS

    def usd(self, asset_id: str, second: int) -> Decimal:
        """What the oracle states, right or wrong."""
        return usd(asset_id, second) * self.quoted.get(asset_id, 1)

    def prices(self, at: datetime) -> Sequence[Price]:
        return [Price(asset_id, at, self.usd(asset_id, unix_second(at))) for asset_id in _USD]

    def markets(self, at: datetime) -> Sequence[Market]:
        second = unix_second(at)
        return [self._market(asset_id, second) for asset_id in (ETH, USDC, ORB, RETH)]

    def _market(self, asset_id: str, second: int) -> Market:
        unit = _UNITS[asset_id] * self.size
        balance = (1000 + wave(second, 3)) * unit
        rules = CollateralConfig(True, Decimal("0.7"), Decimal("0.8"), None, Decimal("0.05"), Decimal("0.1"))
        collateral = CollateralMarket(rules, balance, 1000 * unit)
        if asset_id == RETH:
            return Market(asset_id, None, collateral, None)
        apr = lend_apr(asset_id, second)
        debt = DebtMarket(
            DebtConfig(True, None, Decimal("0.95"), Decimal("0.1")),
            2 * apr, balance // 2, 500 * unit, from_unix(second), Decimal(second),
        )  # fmt: skip
        return Market(asset_id, LendMarket(apr, balance, 1000 * unit), collateral, debt)

    def config(self, at: datetime) -> GlobalConfig:
        return replace(CONFIG, ptoken=PTK, hnative=ORB)

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        first, last = max(unix_second(start) - 1, self.live - AGE), unix_second(end) - 1
        past = range(first - first % RARELY + RARELY, min(last + 1, self.live), RARELY)
        present = range(max(first - first % OFTEN + OFTEN, self.live), last + 1, OFTEN)
        return [event for second in (*past, *present) for event in self._events(second)]

    def _events(self, second: int) -> Iterable[Event]:
        """What happens at a second: one event, or the two legs of a liquidation."""
        asset_id, user = (ETH, ORB, USDC)[second // 10 % 3], _USERS[wave(second, 5, 3)]
        kinds = (Action.BORROW, Action.RETURN, Action.LEND, Action.LIQUIDATE, Action.BORROW_FLASH_LOAN)
        action = kinds[wave(second, 11, len(kinds))]
        legs = (Leg.DEBT, Leg.COLLATERAL) if action is Action.LIQUIDATE else (None,)
        for number, leg in enumerate(legs):
            of = ETH if leg is Leg.COLLATERAL else asset_id
            amount, price = (1 + wave(second, 13)) * _UNITS[of] // 10, usd(of, second)
            value = usd_value(amount, len(str(_UNITS[of])) - 1, price)
            index = 0 if action is Action.LIQUIDATE else None
            yield Event(
                f"{second};{number}", action, of, user, from_unix(second), amount, value, price, index, "contract",
                None, f"tx{second}", leg,
            )  # fmt: skip

    def ptoken(self, at: datetime) -> Ptoken:
        return replace(PTOKEN, asset_id=PTK, total_issued=10**12 * self.size + unix_second(at))

    def arrangements(self, at: datetime) -> Sequence[Arrangement]:
        return [replace(ARRANGEMENTS[0], address=RICH_ADDRESS, claimed=wave(unix_second(at), 17)), *ARRANGEMENTS[1:]]

    def positions(self, at: datetime) -> Iterable[Position]:
        second = unix_second(at)
        for number, user in enumerate(_USERS):
            ethers, dollars, orbs = (_UNITS[asset_id] * (1 + wave(second, number, 10)) for asset_id in (ETH, USDC, ORB))
            yield Position(
                user,
                accounts=(
                    Account(0, (Holding(ETH, ethers), Holding(RETH, 10**18)), (Holding(USDC, 1500 * dollars),)),
                    Account(1, (Holding(ORB, 400 * orbs),), (Holding(ETH, ethers // 2),)),
                ),
                lends=(LendPosition(ETH, 5 * 10**18, 10**18),),
                wallet=(Balance(ETH, ethers), Balance(ORB, orbs)),
                stakes=(Stake(0, 0, 10**6 * (1 + number), False, None, Decimal(1)),),
                claimable_rewards=wave(second, 19),
            )

    def swaps(self, at: datetime) -> Sequence[SwapContract]:
        return [SwapContract(SWAP_CONTRACT, {"uusdc": ("uorb",)})]
