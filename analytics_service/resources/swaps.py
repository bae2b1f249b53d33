"""/api/v1/swap: which denoms a swap contract can swap."""

from collections.abc import Mapping
from typing import Any

from analytics_service.errors import EntityNotFound
from analytics_service.http import params
from analytics_service.market.positions import SwapContract
from analytics_service.present.shapes import Many
from analytics_service.present.swaps import SWAP_TARGETS
from analytics_service.resources.current import Current
from analytics_service.state.view import View

Route = tuple[str, tuple[str, ...]]


class AllRoutes(Current):
    """Every source denom of a swap contract with its targets."""

    families = ("routes",)
    describes_assets = False
    query = (params.CONTRACT_ADDRESS,)
    shape = Many(SWAP_TARGETS)

    def record(self, view: View, arguments: Mapping[str, Any]) -> list[Route]:
        """All routes, in the order of source denoms."""
        return sorted(_contract(view, arguments["contract_address"]).routes.items())


class Routes(Current):
    """One source denom of a swap contract with its targets."""

    families = ("routes",)
    describes_assets = False
    query = (params.CONTRACT_ADDRESS, params.SOURCE_DENOM)
    shape = SWAP_TARGETS

    def record(self, view: View, arguments: Mapping[str, Any]) -> Route:
        """The denom and its targets."""
        denom = arguments["source_denom"]
        routes = _contract(view, arguments["contract_address"]).routes
        if denom not in routes:
            raise EntityNotFound(f"source_denom: {denom[:100]!r} has no routes at this contract.")
        return denom, routes[denom]


def _contract(view: View, address: str) -> SwapContract:
    contract = view.contract(address)
    if contract is None:
        raise EntityNotFound(f"contract_address: {address} is not a swap contract.")
    return contract
