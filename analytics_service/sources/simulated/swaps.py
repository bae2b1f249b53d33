"""The simulated swap contracts. Routes are the same for every seed and instant."""

from analytics_service.market.assets import AssetKind
from analytics_service.market.positions import SwapContract
from analytics_service.sources.simulated.people import contract_address
from analytics_service.sources.simulated.universe import ASSETS

_DENOMS = tuple(asset.symbol_denom for asset in ASSETS if asset.kind is not AssetKind.RECEIPT)
# The second contract swaps only against these.
_QUOTES = ("uusdt", "ahel")

# A contract that swaps every denom for every other denom.
SWAP_CONTRACT = contract_address("swap")
_PAIRS_CONTRACT = "0x" + "5a" * 20


def _pairs(source: str) -> tuple[str, ...]:
    return tuple(denom for denom in (_DENOMS if source in _QUOTES else _QUOTES) if denom != source)


SWAPS = (
    SwapContract(SWAP_CONTRACT, {source: tuple(denom for denom in _DENOMS if denom != source) for source in _DENOMS}),
    SwapContract(_PAIRS_CONTRACT, {source: _pairs(source) for source in _DENOMS}),
)
