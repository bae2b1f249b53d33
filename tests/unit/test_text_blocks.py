"""Blocks of texts take as much memory as they say."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from analytics_service.history.candles import Aggregate
from analytics_service.history.formats import json
from analytics_service.history.memory import Key, Memory
from analytics_service.history.slots import Slot
from analytics_service.history.text_blocks import TextBlock, Texts, Wording

_BLOCKS = 500


@contextmanager
def traced() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("series", "cells", "arrays"), [(1, 1, 1), (37, 1, 1), (1, 1, 5), (37, 24, 1)])
def test_memory_counts_all_that_a_block_takes(series: int, cells: int, arrays: int) -> None:
    """The smallest ones are those of a day on which clocks change, of a history with a single series."""
    ids = [str(place) for place in range(series)]
    counted: list[int] = []
    with traced():
        memory = Memory(10**9, counted.append)
        before, _ = tracemalloc.get_traced_memory()
        for number in range(_BLOCKS):
            slot = Slot(cells, 1000 + number, width=23 * 3600, holds=Wording(json.texts, Aggregate.LAST, None, True))
            points = [b'{"t":1739750400,"v":"%d"},' % place for place in range(series * cells)]
            texts = [Texts.of(points) for _ in range(arrays)]
            memory.put(Key("tvl", slot, number), TextBlock(ids, cells, texts))
        after, _ = tracemalloc.get_traced_memory()
    assert counted[-1] == pytest.approx(after - before, rel=0.25)
