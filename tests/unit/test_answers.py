"""The cache of answers: what is kept, what is evicted, and who renders."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from analytics_service.errors import EntityNotFound
from analytics_service.http.answer import Answer, Validators
from analytics_service.http.answers import AnswerCache, CacheKey
from analytics_service.http.coding import IDENTITY, Coding

# Room for nine bodies of 10,000 bytes with their overhead, but not for ten.
LIMIT = 100_000
TIMEOUT = 10


def key(path: str, query: str = "", coding: Coding = IDENTITY) -> CacheKey:
    return CacheKey(path, query, coding)


class Renderer:
    """Renders answers of a given size, and counts them."""

    def __init__(self, size: int = 10_000) -> None:
        self.count = 0
        self._size = size

    def of(self, state: int) -> Callable[[], Answer]:
        def render() -> Answer:
            self.count += 1
            return Answer(Validators("tag", state), IDENTITY, b"a" * self._size)

        return render


def kept(answers: AnswerCache, paths: str) -> str:
    """The paths with a cached answer. Looking does not count as use."""
    return "".join(path for path in paths if key(path) in answers._entries)


def test_an_answer_is_rendered_once_per_state() -> None:
    answers, renderer = AnswerCache(LIMIT), Renderer()
    first = answers.rendered(key("a"), 1, renderer.of(1))
    assert answers.rendered(key("a"), 1, renderer.of(1)) is first
    assert answers.find(key("a")) is first
    second = answers.rendered(key("a"), 2, renderer.of(2))
    assert renderer.count == 2
    assert answers.find(key("a")) is second


def test_path_query_and_coding_identify_an_answer() -> None:
    answers, renderer = AnswerCache(LIMIT), Renderer()
    keys = [key("a"), key("b"), key("a", "x=1"), key("a", "", Coding("gzip"))]
    for one in keys:
        answers.rendered(one, 1, renderer.of(1))
    # The answer without a coding is encoded.
    assert renderer.count == len(keys) - 1


def test_the_least_recently_used_answer_is_evicted_first() -> None:
    answers, renderer = AnswerCache(LIMIT), Renderer()
    for path in "abcdefghi":
        answers.rendered(key(path), 1, renderer.of(1))
    assert kept(answers, "abcdefghij") == "abcdefghi"
    answers.find(key("a"))
    answers.rendered(key("b"), 1, renderer.of(1))
    answers.rendered(key("j"), 1, renderer.of(1))
    assert kept(answers, "abcdefghij") == "abdefghij"


def test_an_answer_for_another_state_replaces_the_one_before() -> None:
    answers, renderer = AnswerCache(LIMIT), Renderer()
    for state in range(50):
        answers.rendered(key("a"), state, renderer.of(state))
        answers.rendered(key("b"), 0, renderer.of(0))
    assert renderer.count == 51
    assert kept(answers, "ab") == "ab"


def test_the_limit_includes_keys() -> None:
    answers, renderer = AnswerCache(LIMIT), Renderer(size=10)
    for number in range(1000):
        answers.rendered(key("a", f"{number:08000}"), 1, renderer.of(1))
    # 9,011 bytes each.
    assert len(answers._entries) == 11


def test_a_large_answer_does_not_evict_all_others() -> None:
    answers, small, large = AnswerCache(LIMIT), Renderer(), Renderer(size=LIMIT // 4)
    answers.rendered(key("a"), 1, small.of(1))
    for _ in range(2):
        assert len(answers.rendered(key("b"), 1, large.of(1)).body) == LIMIT // 4
    assert (large.count, kept(answers, "ab")) == (2, "a")


def test_an_answer_that_grew_too_large_is_no_longer_kept() -> None:
    answers, small, large = AnswerCache(LIMIT), Renderer(), Renderer(size=LIMIT // 4)
    answers.rendered(key("a"), 1, small.of(1))
    answers.rendered(key("a"), 2, large.of(2))
    assert answers.find(key("a")) is None


def test_a_limit_of_0_keeps_nothing() -> None:
    answers, renderer = AnswerCache(0), Renderer(size=0)
    for _ in range(3):
        answers.rendered(key("a"), 1, renderer.of(1))
    assert (renderer.count, answers.find(key("a"))) == (3, None)


def test_an_error_is_raised_and_not_kept() -> None:
    answers, renderer = AnswerCache(LIMIT), Renderer()

    def fail() -> Answer:
        raise EntityNotFound("nothing of that name")

    for _ in range(2):
        with pytest.raises(EntityNotFound):
            answers.rendered(key("a"), 1, fail)
    answers.rendered(key("a"), 1, renderer.of(1))
    assert renderer.count == 1


def test_threads_that_want_the_same_answer_wait_for_the_one_that_renders_it() -> None:
    answers, started, resumed = AnswerCache(LIMIT), threading.Event(), threading.Event()
    renderer = Renderer()

    def render_slowly() -> Answer:
        started.set()
        assert resumed.wait(TIMEOUT)
        return renderer.of(1)()

    with ThreadPoolExecutor(5) as pool:
        first = pool.submit(answers.rendered, key("a"), 1, render_slowly)
        assert started.wait(TIMEOUT)
        others = [pool.submit(answers.rendered, key("a"), 1, render_slowly) for _ in range(3)]
        # Other keys do not wait.
        assert pool.submit(answers.rendered, key("b"), 1, Renderer().of(1)).result(TIMEOUT)
        assert not any(one.done() for one in others)
        resumed.set()
    assert renderer.count == 1
    assert {id(one.result()) for one in others} == {id(first.result())}
