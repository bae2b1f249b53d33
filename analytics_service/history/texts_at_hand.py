"""Texts of the points of pages: cut out of blocks in memory, and made where there are none."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from analytics_service.history.buckets import Buckets
from analytics_service.history.formats.base import Cut
from analytics_service.history.memory import Key, Loader, Need
from analytics_service.history.states import State
from analytics_service.history.text_blocks import Stretch, TextBlock, Wording, look_up_texts

Load = Callable[[Key], TextBlock | None]
Make = Callable[[State, Sequence[str], Buckets, Wording], Cut]


class TextsAtHand:
    """Texts of points. Missing blocks are requested of the `loader`, which has `load` make them later; meanwhile the
    texts of a page are those that `make` makes."""

    def __init__(self, loader: Loader, load: Load, make: Make) -> None:
        self.memory = loader.memory
        self._loader = loader
        self._load = load
        self._make = make

    def texts(self, state: State, ids: Sequence[str], buckets: Buckets, wording: Wording) -> list[Cut]:
        """The texts of the points of some series, stretch by stretch."""
        cuts: list[Cut] = []
        done = 0
        for stretch, block in self._found(state, buckets, wording) if self.memory.limit and state.series else ():
            cuts += self._made(state, ids, buckets, wording, range(done, stretch.first))
            cuts.append(block.cut([state.places[asset_id] for asset_id in ids], stretch.run))
            done = stretch.stop
        return cuts + self._made(state, ids, buckets, wording, range(done, buckets.count))

    def _found(self, state: State, buckets: Buckets, wording: Wording) -> list[tuple[Stretch, TextBlock]]:
        """The stretches whose texts are in memory. Those that could be and are not are requested."""
        found = [(stretch, self._block(state, stretch)) for stretch in look_up_texts(state, buckets, wording)]
        missing = [state.key(stretch.run.slot) for stretch, block in found if block is None]
        self._loader.request(missing, self._load, Need.USEFUL)
        return [(stretch, block) for stretch, block in found if block is not None]

    def _block(self, state: State, stretch: Stretch) -> TextBlock | None:
        block = self.memory.get(state.key(stretch.run.slot))
        if isinstance(block, TextBlock) and block.ids == state.ids and block.cells > stretch.run.cells[-1]:
            return block
        return None

    def _made(self, state: State, ids: Sequence[str], buckets: Buckets, wording: Wording, numbers: range) -> list[Cut]:
        """The texts of some of the buckets, by number, made anew."""
        if not numbers:
            return []
        some = replace(buckets, begins=buckets.begins[numbers.start : numbers.stop + 1])
        return [self._make(state, ids, some, wording)]
