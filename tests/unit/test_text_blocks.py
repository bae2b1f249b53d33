"""Blocks of texts are cut as they were made, and are in the file as long as somebody refers to them."""

import random
from pathlib import Path

from analytics_service.history.slots import Run, Slot
from analytics_service.history.text_blocks import TextBlock
from analytics_service.history.text_file import TextFile
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
