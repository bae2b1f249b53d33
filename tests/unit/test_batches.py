"""Rows in pieces and in parts: none is lost, all stay in order, and an address is whole in one part."""

import polars as pl
import pytest

from analytics_service.store.batches import HashPartitions, RowBatches, join_batches

ROWS = 100_000


def frames(*heights: int) -> list[pl.DataFrame]:
    """Frames of rows that are numbered throughout; every thousandth has the same address, in all of them."""
    numbers = pl.DataFrame({"number": range(sum(heights))})
    rows = numbers.with_columns(address=(pl.col("number") % 1_000).cast(pl.String))
    starts = [sum(heights[:index]) for index in range(len(heights))]
    return [rows.slice(start, height) for start, height in zip(starts, heights, strict=True)]


def test_frames_are_joined_until_they_have_many_rows() -> None:
    assert [frame.height for frame in join_batches(frames(ROWS - 1, 1, 0, ROWS + 7, 3, 0, 4))] == [ROWS, ROWS + 7, 7]
    assert [*join_batches([]), *join_batches(frames(0, 0))] == []


@pytest.mark.parametrize("heights", [(), (0,), (5, 0, 6), (ROWS - 1, 2, ROWS, 8, 9)])
def test_rows_come_back_in_their_order(heights: tuple[int, ...]) -> None:
    pieces = RowBatches()
    for frame in frames(*heights):
        pieces.add(frame)
    assert pieces.height == sum(heights)
    for _ in range(2):
        assert [number for piece in pieces for number in piece["number"]] == [*range(sum(heights))]


@pytest.mark.parametrize(("heights", "parts"), [((), 1), ((7, 5), 1), ((4 * ROWS - 1, 3, ROWS, 9), 32)])
def test_all_rows_of_an_address_are_in_one_part(heights: tuple[int, ...], parts: int) -> None:
    divided = HashPartitions(frames(*heights))
    read = [pl.concat([*frames(0), *part]) for part in divided]
    addresses = [{*part["address"]} for part in read]
    assert len(read) == parts
    assert sum(map(len, addresses)) == len(set().union(*addresses)) == min(sum(heights), 1_000)
    assert sorted(number for part in read for number in part["number"]) == [*range(sum(heights))]
    assert all(part["number"].is_sorted() for part in read)
    others = divided.divided(pl.DataFrame({"address": [str(number) for number in range(1_000)]}))
    assert sum(other.height for other in others) == 1_000
    assert all(own <= {*other["address"]} for own, other in zip(addresses, others, strict=True))
