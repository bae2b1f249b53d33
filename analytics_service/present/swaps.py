"""Swap routes as responses show them (interface section 2, Swap route target set)."""

from operator import itemgetter

from analytics_service.present.kinds import STRING
from analytics_service.present.shapes import Field, Many, Shape

# Its record is an item of `SwapContract.routes`: a pair of source and targets.
SWAP_TARGETS = Shape(
    "SwapRouteTargets",
    "What one denom can be swapped to. Plain chain denoms, not asset ids.",
    (
        Field("source", STRING, "Denom to swap from.", source=itemgetter(0)),
        Field("targets", Many(STRING), "Denoms it can be swapped to.", source=itemgetter(1)),
    ),
)
