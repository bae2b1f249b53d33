"""How often a snapshot of each family is taken."""

from collections.abc import Mapping

from analytics_service.state.heads import Heads


class Intervals:
    """Seconds between snapshots of each scheduled family: what a scheduler tells goes before the settings of this host,
    where none may run (rule 1.3).

    `own` are those of the settings; empty if no jobs run.
    """

    def __init__(self, heads: Heads, own: Mapping[str, int]) -> None:
        self._heads = heads
        self._own = own

    def __call__(self) -> Mapping[str, int]:
        """Those of now, always for the same families. It asks the store nothing."""
        told = self._heads.intervals
        return {family: told.get(family, every) for family, every in self._own.items()}
