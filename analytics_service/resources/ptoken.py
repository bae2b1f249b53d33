"""/api/v1/ptoken, and the distribution of the protocol token's unlocks."""

from collections.abc import Mapping
from typing import Any

from analytics_service.http import params
from analytics_service.market.ptoken import Ptoken
from analytics_service.market.unlocks import unlock_groups
from analytics_service.present.shapes import Shape
from analytics_service.present.unlocks import UNLOCKS_DISTRIBUTION, UnlocksDistribution
from analytics_service.resources.current import Current
from analytics_service.resources.snapshots import Shared
from analytics_service.state.view import View

_FAMILIES = ("ptoken",)


class PtokenPart(Current):
    """The protocol token in one of its shapes."""

    families = _FAMILIES
    query = (params.WITH_TEXT, params.WITH_VALUE)

    def __init__(self, shared: Shared, shape: Shape, summary: str) -> None:
        super().__init__(shared)
        self.shape = shape
        self.summary = summary

    def record(self, view: View, arguments: Mapping[str, Any]) -> Ptoken:
        """The protocol token."""
        return view.ptoken


class UnlockGroups(Current):
    """Sums of unlock arrangements by member class, at the snapshot's instant."""

    families = _FAMILIES
    query = (params.WITH_PERCENT, params.WITH_TEXT, params.WITH_VALUE)
    shape = UNLOCKS_DISTRIBUTION

    def record(self, view: View, arguments: Mapping[str, Any]) -> UnlocksDistribution:
        """All groups."""
        groups = unlock_groups(view.arrangements, view.head("ptoken").instant)
        return UnlocksDistribution(view.ptoken.asset_id, groups)
