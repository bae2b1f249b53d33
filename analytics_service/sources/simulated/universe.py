"""Random numbers, and the assets of the simulated protocol with their oracle prices.

The assets do not depend on the seed, so that documents can name their ids. A price is a pure function of seed, asset
and second, in whole numbers only, and moves like a market price.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b, sha256
from typing import TypeVar

from analytics_service.market.assets import Asset, AssetGroup, AssetKind, link_receipts
from analytics_service.market.instants import DAY

# The number 1 in fixed-point arithmetic.
UNIT = 10**18
# 2024-01-01. From then on, the value of a liquid staking token grows; before, it is equal to its origin's.
GENESIS = 1_704_067_200
# Fractional bits of noise. Products of two such numbers are fast.
_BITS = 30
# Seconds between independent values of each octave of a price: 364 days, 91 days, ... down to 32 minutes. A price moves
# with the square root of time: periods differ by a factor of 4, so swings halve.
_PERIODS = tuple(1_920 * 4**octave for octave in reversed(range(8)))
_Item = TypeVar("_Item")


def drawn(key: str, limit: int) -> int:
    """A number in [0, limit), uniformly distributed, equal on every platform."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest()) * limit >> 64


class Draws:
    """A sequence of whole numbers drawn from a key."""

    def __init__(self, key: str) -> None:
        self._key, self._count = key, 0

    def below(self, limit: int) -> int:
        """A number in [0, limit)."""
        self._count += 1
        return drawn(f"{self._key}|{self._count}", limit)

    def between(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def sized(self, low: int, doublings: int) -> int:
        """A number from `low` to `low` doubled `doublings` times. Each doubling is equally likely, so most are
        small."""
        size = low << self.below(doublings)
        return size + self.below(size)

    def pick(self, items: Sequence[_Item]) -> _Item:
        return items[self.below(len(items))]

    def sample(self, items: Iterable[_Item], count: int) -> list[_Item]:
        remaining = list(items)
        return [remaining.pop(self.below(len(remaining))) for _ in range(count)]


_NATIVE, _TOKEN = AssetGroup.NATIVE, AssetGroup.TOKEN
_Row = tuple[AssetGroup, str, str, int, int]
# Symbol: group, denom, name, decimals of denom and display; USD, and basis points of its moves in a year.
_REGULAR: dict[str, tuple[_Row, str, int]] = {
    "PTK": ((_NATIVE, "uptk", "Protocol Token", 6, 2), "0.42", 11_000),
    "HEL": ((_NATIVE, "ahel", "Helion", 18, 4), "23", 8_500),
    "ORB": ((_NATIVE, "uorb", "Orbit", 6, 2), "7.6", 9_500),
    "ETH": ((_TOKEN, "wei", "Bridged Ether", 18, 5), "2900", 7_000),
    "BTC": ((_TOKEN, "sat", "Bridged Bitcoin", 8, 6), "60000", 6_000),
    "TIDE": ((_NATIVE, "ntide", "Tidewater", 9, 2), "1.35", 10_500),
    "QRY": ((_TOKEN, "pqry", "Quarry", 12, 1), "0.0185", 13_000),
    "USDT": ((_TOKEN, "uusdt", "Tether USD", 6, 2), "1", 10),
    "USDC": ((_TOKEN, "uusdc", "USD Coin", 6, 2), "1", 8),
    "HUSD": ((_NATIVE, "uhusd", "Helion Dollar", 6, 2), "1", 15),
}
# Symbol: group, denom, name, decimals; its origin, and the percent of its growth in a year.
_STAKED: dict[str, tuple[_Row, str, int]] = {
    "stHEL": ((_NATIVE, "asthel", "Staked Helion", 18, 4), "HEL", 11),
    "stORB": ((_TOKEN, "ustorb", "Staked Orbit", 6, 2), "ORB", 14),
    "stETH": ((_TOKEN, "stwei", "Staked Ether", 18, 5), "ETH", 3),
}


def _asset(symbol: str, row: _Row, kind: AssetKind = AssetKind.REGULAR, origin: str | None = None) -> Asset:
    """A native asset has its denom as key, and a token its contract's address, which is derived from the symbol."""
    group, denom, name, decimals, display = row
    key = denom if group == _NATIVE else "0x" + sha256(symbol.encode()).hexdigest()[:40]
    return Asset(group, key, name, symbol, denom, decimals, display, kind, origin)


_PLAIN = {symbol: _asset(symbol, row) for symbol, (row, *_) in _REGULAR.items()}
# The receipt tokens of lenders, which the oracle does not quote. The protocol token is not lent.
_RECEIPTS = [
    _asset(f"r{symbol}", (_TOKEN, f"r{denom}", f"{name} Receipt", places, shown), AssetKind.RECEIPT, _PLAIN[symbol].id)
    for symbol, ((_, denom, name, places, shown), *_) in _REGULAR.items()
    if symbol != "PTK"
]
_LIQUID = [
    _asset(symbol, row, AssetKind.LIQUID_STAKING, _PLAIN[origin].id) for symbol, (row, origin, _) in _STAKED.items()
]
ASSETS = tuple(link_receipts({asset.id: asset for asset in (*_PLAIN.values(), *_LIQUID, *_RECEIPTS)}).values())
ID_OF = {asset.symbol: asset.id for asset in ASSETS}
# The origins of receipt tokens.
ORIGINS = {asset.id: asset.origin_asset or "" for asset in _RECEIPTS}
# The quoted assets, by id: USD without noise, amplitude and name of the noise, and growth for each year since 2024. The
# amplitude has `_BITS` fractional bits; the other numbers are in `UNIT`.
LISTINGS = {
    ID_OF[symbol]: (int(Decimal(usd) * UNIT), (points << _BITS) // 10_000, ID_OF[symbol], 0)
    for symbol, (_, usd, points) in _REGULAR.items()
}
for _symbol, (_, _origin, _percent) in _STAKED.items():
    LISTINGS[ID_OF[_symbol]] = (*LISTINGS[ID_OF[_origin]][:3], _percent * UNIT // 100)


@lru_cache(maxsize=20_000)
def usd_price(seed: str, asset_id: str, second: int) -> int:
    """USD per standard unit of a listed asset at a unix second, in `UNIT`: e to the power of noise and growth."""
    (usd, swing, follows, yearly), noise = LISTINGS[asset_id], 0
    for halvings, (period, phase, name) in enumerate(_octaves(seed, follows)):
        index, within = divmod(second + phase, period)
        before, after = _independent(name, index), _independent(name, index + 1)
        x = (within << _BITS) // period
        eased = x * x * ((3 << _BITS) - 2 * x) >> 2 * _BITS
        noise += (swing >> halvings) * (before + ((after - before) * eased >> _BITS)) >> _BITS
    growth = yearly * max(second - GENESIS, 0) // (365 * DAY)
    return usd * _power(noise * UNIT >> _BITS) // UNIT * _power(growth) // UNIT


def _power(exponent: int) -> int:
    """An approximation of e to the power of an exponent, both in `UNIT`."""
    result = UNIT + exponent // 16
    for _ in range(4):
        result = result * result // UNIT
    return result


@lru_cache(maxsize=100)
def _octaves(seed: str, follows: str) -> list[tuple[int, int, str]]:
    """The period, phase and name of each octave. Phases differ, or all assets would be flat at common instants."""
    names = [(period, f"{seed}|{follows}|{period}") for period in _PERIODS]
    return [(period, drawn(name, period), name) for period, name in names]


@lru_cache(maxsize=20_000)
def _independent(name: str, index: int) -> int:
    """A value of an octave, from -1 to 1 with `_BITS` fractional bits."""
    return drawn(f"{name}|{index}", 2 << _BITS) - (1 << _BITS)
