"""The assets of the simulated protocol: the same for every seed, so that their ids can be quoted."""

from dataclasses import dataclass, replace
from decimal import Decimal
from hashlib import sha256

from analytics_service.market.assets import Asset, AssetGroup, AssetKind

# The number 1 in fixed-point arithmetic.
UNIT = 10**18
# Fractional bits of noise. Products of two such numbers are fast.
BITS = 30
# Seconds between independent values of each octave of a price: 32 minutes, 2 hours, ... up to 364 days.
PERIODS = tuple(1_920 * 4**octave for octave in range(8))


@dataclass(frozen=True, slots=True)
class Listing:
    """An asset and the behaviour of its oracle price.

    The price is `usd` times e to the power of: noise with the name `follows` and the amplitudes `swings`, plus `growth`
    for each year since 2024. Swings have `BITS` fractional bits; the others are in `UNIT`.
    """

    asset: Asset
    usd: int
    swings: tuple[int, ...]
    follows: str
    growth: int = 0


def regular(asset: Asset, usd: str, swings: tuple[int, ...]) -> Listing:
    """A listing whose price follows no other."""
    return Listing(asset, int(Decimal(usd) * UNIT), swings, follows=asset.id)


def staked(asset: Asset, origin: Listing, percent: int) -> Listing:
    """The asset as a liquid staking token, worth a share of `origin` that grows by about `percent` a year."""
    stands_for = replace(asset, kind=AssetKind.LIQUID_STAKING, origin_asset=origin.asset.id)
    return replace(origin, asset=stands_for, growth=percent * UNIT // 100)


def volatile(percent: int) -> tuple[int, ...]:
    """Swings of a price that moves by about `percent` in a year, and in shorter times by the root of the time."""
    # Periods differ by a factor of 4, so the root halves with each shorter octave.
    return tuple((percent << BITS) // 100 >> halvings for halvings in reversed(range(len(PERIODS))))


def pegged(basis_points: int) -> tuple[int, ...]:
    """Swings of a price that stays within `basis_points` of its peg."""
    return ((basis_points << BITS) // 10_000 // len(PERIODS),) * len(PERIODS)


def native(denom: str, name: str, symbol: str, decimals: int, display: int) -> Asset:
    """An asset of the chain itself, known by its denom."""
    return Asset(AssetGroup.NATIVE, denom, name, symbol, denom, decimals, display)


def token(denom: str, name: str, symbol: str, decimals: int, display: int) -> Asset:
    """An asset of a contract. Its address is made from the symbol."""
    address = "0x" + sha256(symbol.encode()).hexdigest()[:40]
    return Asset(AssetGroup.TOKEN, address, name, symbol, denom, decimals, display)


def receipt_of(origin: Asset) -> Asset:
    """The token that lenders of `origin` receive. No oracle quotes it."""
    decimals, display = origin.decimals_denom, origin.decimals_display
    receipt = token(f"r{origin.symbol_denom}", f"{origin.name} Receipt", f"r{origin.symbol}", decimals, display)
    return replace(receipt, kind=AssetKind.RECEIPT, origin_asset=origin.id)


_PTOKEN = regular(native("uptk", "Protocol Token", "PTK", 6, 2), "0.42", volatile(110))
_HNATIVE = regular(native("ahel", "Helion", "HEL", 18, 4), "23", volatile(85))
_ORBIT = regular(native("uorb", "Orbit", "ORB", 6, 2), "7.6", volatile(95))
_ETHER = regular(token("wei", "Bridged Ether", "ETH", 18, 5), "2900", volatile(70))
_LENT = (
    _HNATIVE,
    _ORBIT,
    _ETHER,
    regular(token("sat", "Bridged Bitcoin", "BTC", 8, 6), "60000", volatile(60)),
    regular(native("ntide", "Tidewater", "TIDE", 9, 2), "1.35", volatile(105)),
    regular(token("pqry", "Quarry", "QRY", 12, 1), "0.0185", volatile(130)),
    regular(token("uusdt", "Tether USD", "USDT", 6, 2), "1", pegged(20)),
    regular(token("uusdc", "USD Coin", "USDC", 6, 2), "1", pegged(15)),
    regular(native("uhusd", "Helion Dollar", "HUSD", 6, 2), "1", pegged(30)),
)
_RECEIPTS = {listing.asset.id: receipt_of(listing.asset) for listing in _LENT}

# Every asset with an oracle price, by id.
LISTINGS = {
    listing.asset.id: listing
    for listing in (
        _PTOKEN,
        *(replace(lent, asset=replace(lent.asset, receipt_asset=_RECEIPTS[lent.asset.id].id)) for lent in _LENT),
        staked(native("asthel", "Staked Helion", "stHEL", 18, 4), _HNATIVE, 11),
        staked(token("ustorb", "Staked Orbit", "stORB", 6, 2), _ORBIT, 14),
        staked(token("stwei", "Staked Ether", "stETH", 18, 5), _ETHER, 3),
    )
}
ASSETS = (*(listing.asset for listing in LISTINGS.values()), *_RECEIPTS.values())
