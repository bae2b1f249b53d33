"""Single observations in memory, against a walk over them."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics_service.history.observations import Observations
from tests import oracle
from tests.unit.test_blocks import BOUNDARY, WEEKS, Seen, buffers, observed, seconds
from tests.unit.test_sample import rows_of


@given(
    series=st.dictionaries(st.sampled_from("abc"), observed, min_size=1),
    begin=seconds,
    length=st.integers(0, WEEKS),
    asked=st.permutations("abcx"),
)
@settings(max_examples=200, deadline=None)
def test_observations_tell_the_last_one_between_two_seconds(
    series: dict[str, Seen], begin: int, length: int, asked: list[str]
) -> None:
    observations = Observations.of(list(series), 0, BOUNDARY + WEEKS + 1, rows_of(list(series.values())))
    found = observations.last(asked, begin, begin + length)
    over = observations.over(pl.Series(["before"] * 8), asked, begin, begin + length).to_list()
    assert over[:4] == ["before"] * 4
    assert over[4:] == [value or "before" for value in (found["value"] if found is not None else [None] * 4)]
    if found is None:
        assert not any(begin <= second < begin + length for seen in series.values() for second, _ in seen)
        return
    for name, value, at in zip(asked, found["value"], found["observed_at"], strict=True):
        # Of several in one second the last one in the list has the greatest rank.
        inside = [(second, n) for n, (second, _) in enumerate(series.get(name, [])) if begin <= second < begin + length]
        if not inside:
            assert (value, at) == (None, None)
        else:
            second, n = max(inside)
            assert (value, at) == (oracle.text(series[name][n][1]), second)


@given(
    series=st.dictionaries(st.sampled_from("abc"), observed, min_size=1),
    more=st.dictionaries(st.sampled_from("abcd"), observed),
    cut=seconds,
    overlap=st.integers(0, 86_400),
)
@settings(max_examples=200, deadline=None)
def test_observations_go_on_with_later_ones(
    series: dict[str, Seen], more: dict[str, Seen], cut: int, overlap: int
) -> None:
    """What both spans hold counts once."""
    ids, end = sorted({*series, *more}), BOUNDARY + WEEKS + 1
    everything = {name: sorted(series.get(name, []) + more.get(name, []), key=lambda one: one[0]) for name in ids}

    def between(names: list[str], begin: int, end: int) -> Observations:
        rows = rows_of([[one for one in everything[name] if begin <= one[0] < end] for name in names])
        return Observations.of(names, begin, end, rows)

    early = between([name for name in ids if name in series], 0, cut)
    # A series that only the later span has is not known to the earlier one.
    if any(one[0] < cut for name in ids if name not in series for one in everything[name]):
        return
    both, whole = early.followed_by(between(ids, max(cut - overlap, 0), end)), between(ids, 0, end)
    assert (both.begin, both.end, both.seconds) == (0, end, whole.seconds)
    last, expected = both.last(ids, 0, end), whole.last(ids, 0, end)
    assert last is not None
    assert expected is not None
    assert last.rows() == expected.rows()
    shorter = both.between(cut, end)
    assert (shorter.begin, shorter.end) == (cut, end)
    assert [*shorter.seconds] == [second for second in whole.seconds if second >= cut]


def test_the_size_of_observations_is_that_of_their_buffers() -> None:
    rows = {"series": [0] * 5000, "observed_at": range(5000), "value": [f"{n}.{'7' * 18}" for n in range(5000)]}
    observed = Observations.of(["a"], 0, 5000, pl.DataFrame({**rows, "rank": [0] * 5000}))
    kept = pl.DataFrame({"a": pl.Series(observed.seconds, dtype=pl.UInt32), "b": observed.series, "c": observed.values})
    assert observed.size == buffers(kept)
