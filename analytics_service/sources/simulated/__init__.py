"""A simulated protocol: the same seed and instant always give the same state. Each kind of data has a module."""

from analytics_service.sources.simulated.people import (
    EMPTY_ADDRESS,
    RICH_ADDRESS,
    UNHEALTHY_ADDRESS,
)
from analytics_service.sources.simulated.swaps import SWAP_CONTRACT

__all__ = ["EMPTY_ADDRESS", "RICH_ADDRESS", "SWAP_CONTRACT", "UNHEALTHY_ADDRESS"]
