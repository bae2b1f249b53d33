"""Rows in pieces and in parts: none is lost, all stay in order, and an address is whole in one part."""

import polars as pl
import pytest

from analytics_service.store.batches import HashPartitions

ROWS = 100_000


def frames(*heights: int) -> list[pl.DataFrame]:
    """Frames of rows that are numbered throughout; every thousandth has the same address, in all of them."""
    numbers = pl.DataFrame({"number": range(sum(heights))})
    rows = numbers.with_columns(address=(pl.col("number") % 1_000).cast(pl.String))
    starts = [sum(heights[:index]) for index in range(len(heights))]
    return [rows.slice(start, height) for start, height in zip(starts, heights, strict=True)]


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
