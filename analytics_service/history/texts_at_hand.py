"""Texts of the points of pages: cut out of blocks that are kept, and made where there are none."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from analytics_service.history.buckets import Buckets
from analytics_service.history.formats.base import Cut
from analytics_service.history.memory import Key, Loader, Need
from analytics_service.history.slots import Run
from analytics_service.history.states import State
from analytics_service.history.text_blocks import Stretch, TextBlock, Wording, look_up_texts
from analytics_service.history.text_file import TextFile

log = logging.getLogger(__name__)

# The texts of all points of a slot, each of them by itself, and the ids of their series; None if they cannot be made.
MakeAll = Callable[[Key], tuple[Sequence[str], Cut] | None]
Make = Callable[[State, Sequence[str], Buckets, Wording], Cut]


class TextsAtHand:
    """Texts of points. Missing blocks are requested of the `loader`, which writes what `make_all` makes to the `file`
    later; meanwhile the texts of a page are those that `make` makes. So they are while the file cannot be used."""

    def __init__(self, loader: Loader, file: TextFile, make_all: MakeAll, make: Make) -> None:
        self.memory = loader.memory
        self._loader = loader
        self._file = file
        self._make_all = make_all
        self._make = make

    def texts(self, state: State, ids: Sequence[str], buckets: Buckets, wording: Wording) -> list[Cut]:
        """The texts of the points of some series, stretch by stretch."""
        cuts: list[Cut] = []
        done = 0
        for stretch, cut in self._found(state, ids, buckets, wording) if self.memory.limit and state.series else ():
            cuts += self._made(state, ids, buckets, wording, range(done, stretch.first))
            cuts.append(cut)
            done = stretch.stop
        return cuts + self._made(state, ids, buckets, wording, range(done, buckets.count))

    def _found(self, state: State, ids: Sequence[str], buckets: Buckets, wording: Wording) -> list[tuple[Stretch, Cut]]:
        """The stretches whose texts are kept, and these. Those that could be and are not are requested."""
        series = [state.places[asset_id] for asset_id in ids]
        found = [(stretch, self._cut(state, series, stretch.run)) for stretch in look_up_texts(state, buckets, wording)]
        missing = [state.key(stretch.run.slot) for stretch, cut in found if cut is None]
        self._loader.request(missing, self._load, Need.USEFUL)
        return [(stretch, cut) for stretch, cut in found if cut is not None]

    def _cut(self, state: State, series: Sequence[int], run: Run) -> Cut | None:
        block = self.memory.get(state.key(run.slot))
        if not isinstance(block, TextBlock) or block.ids != state.ids or block.cells <= run.cells[-1]:
            return None
        try:
            return block.cut(series, run)
        except OSError as error:
            log.warning("JSON of history is made anew: its temporary file cannot be read: %s", error)
            self.memory.drop([state.key(run.slot)])
            return None

    def _load(self, key: Key) -> TextBlock | None:
        made = self._make_all(key) if self._file.may_add() else None
        if made is None:
            return None
        try:
            return TextBlock.written(self._file, *made)
        except OSError as error:
            log.warning("JSON of history is not kept for now: its temporary file cannot be written: %s", error)
            return None

    def _made(self, state: State, ids: Sequence[str], buckets: Buckets, wording: Wording, numbers: range) -> list[Cut]:
        """The texts of some of the buckets, by number, made anew."""
        if not numbers:
            return []
        some = replace(buckets, begins=buckets.begins[numbers.start : numbers.stop + 1])
        return [self._make(state, ids, some, wording)]
