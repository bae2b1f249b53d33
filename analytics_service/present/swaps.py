"""Swap routes in responses."""

from operator import itemgetter

from analytics_service.present.kinds import STRING
from analytics_service.present.shapes import Field, Many, Shape

# Its record is an item of `SwapContract.routes`: a pair of source and targets.
SWAP_TARGETS = Shape(
    "SwapRouteTargets",
    "The denoms that one denom can be swapped to. These are plain chain denoms, not asset ids.",
    (
        Field("source", STRING, "Denom to swap from.", source=itemgetter(0)),
        Field("targets", Many(STRING), "Denoms it can be swapped to.", source=itemgetter(1)),
    ),
)
