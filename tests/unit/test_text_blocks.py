"""Blocks of texts are cut as they were made, and are in the file as long as somebody refers to them."""

import random
from pathlib import Path

import pytest

from analytics_service.history.buckets import Buckets
from analytics_service.history.candles import Aggregate
from analytics_service.history.formats import json
from analytics_service.history.slots import Run, Slot
from analytics_service.history.states import SeriesInfo, State
from analytics_service.history.text_blocks import TextBlock, Wording, look_up_texts
from analytics_service.history.text_file import TextFile
from analytics_service.store.ledger import Head
from tests.files import opened

IDS = ["token;a", "token;b", "token;c"]


def test_texts_of_some_series_in_some_cells_are_cut(draw: random.Random) -> None:
    for cells in (1, 2, 40, 3000):
        arrays = [[draw.randbytes(draw.randrange(1, 60)) for _ in range(3 * cells)] for _ in range(2)]
        block = TextBlock.written(TextFile(), IDS, arrays)
        assert block.cells == cells
        for series in ([0, 1, 2], [2, 0], [1]):
            first = draw.randrange(cells)
            run = Run(Slot(cells, 0), range(first, draw.randrange(first, cells) + 1))
            assert [[*map(bytes, one)] for one in block.cut(series, run)] == [
                [b"".join(texts[place * cells + cell] for cell in run.cells) for place in series] for texts in arrays
            ]


def test_what_nobody_refers_to_makes_room(temporary: Path) -> None:
    file = TextFile()
    for _ in range(20):
        block = TextBlock.written(file, IDS, [[b"text" * 10_000] * 3])
        (path,) = opened(temporary)
        assert 3 * 40_000 < block.size < 2**18
        # A block is written before the name that had the one before is given to it.
        assert path.stat().st_size <= 2 * block.size


@pytest.mark.parametrize("count", [1, 37, 2048, 2049, 10_000])
def test_hours_of_many_series_are_kept_too(count: int) -> None:
    series = {f"token;{number}": SeriesInfo(0, 10**6, "1") for number in range(count)}
    state = State("price", Head("prices", 10**6, 10**6, 1, 1), series, (), (), [(0, -1)], None)
    hours = Buckets(range(36_000, 36_000 + 41 * 3600, 3600), 10**6)
    found = look_up_texts(state, hours, Wording(json.texts, Aggregate.LAST, None, carry=True))
    assert [number for one in found for number in range(one.first, one.stop)] == [*range(40)]
