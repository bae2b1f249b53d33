"""The simulated protocol from its launch on: its state at any second is the fold of its transactions."""

import threading
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from heapq import heappop, heapreplace

from analytics_service.market.events import Event
from analytics_service.market.instants import DAY
from analytics_service.sources.simulated.state import State
from analytics_service.sources.simulated.terms import LAUNCH
from analytics_service.sources.simulated.turn import Turn

# States that are kept, and the days whose states stay when there are more.
_MAX_KEPT, _STAYING = 500, 32 * DAY


class Ledger:
    """Goes on from checkpoints: the states at the starts of days, and those of the last requests."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._kept = {0: State.first(seed)}
        self._lock = threading.Lock()

    def at(self, second: int) -> State:
        """The state after all that happens up to a second."""
        with self._lock:
            return self._at(second)

    def events(self, after: int, until: int) -> list[Event]:
        """The events of the seconds after `after` up to `until`, oldest first."""
        with self._lock:
            return [event for turn in self._turns(self._at(after), after, until) for event in turn.events()]

    def _at(self, second: int) -> State:
        begin = max(kept for kept in self._kept if kept <= max(second, 0))
        state = self._kept[begin].copy()
        deque(self._turns(state, begin, second), maxlen=0)
        return state

    def _turns(self, state: State, second: int, until: int) -> Iterator[Turn]:
        days = range(max(second, LAUNCH) // DAY * DAY + DAY, until, DAY)
        for end in (*days, until):
            while state.agenda[0].second <= end and state.second < end:
                turn = Turn(self._seed, state, state.agenda[0])
                if following := turn.take():
                    heapreplace(state.agenda, following)
                else:
                    heappop(state.agenda)
                yield turn
            self._kept.setdefault(end, state.copy())
            if len(self._kept) > _MAX_KEPT:
                del self._kept[next(kept for kept in self._kept if kept % _STAYING)]


@lru_cache(maxsize=4)
def ledger(seed: str) -> Ledger:
    """The ledger of a seed, which all sources of a process share."""
    return Ledger(seed)
