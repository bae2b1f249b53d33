"""The cache of answers: what is kept, what is evicted, and who renders."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from analytics_service.http.answer import Answer, Validators
from analytics_service.http.answer_cache import AnswerCache, CacheKey

# Room for nine bodies of 10,000 bytes, as they are and compressed, with their overhead, but not for ten.
LIMIT = 200_000
TIMEOUT = 10


def key(path: str, query: str = "", media: str = "application/json") -> CacheKey:
    return CacheKey(path, query, media)


class Renderer:
    """Renders answers of a given size, and counts them."""

    def __init__(self, size: int = 10_000) -> None:
        self.count = 0
        self._size = size

    def of(self, state: int) -> Callable[[], Answer]:
        def render() -> Answer:
            self.count += 1
            return Answer(Validators("tag", state), b"a" * self._size)

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
    assert (answers.find(key("a")), len(answers._entries)) == (second, 1)


def test_path_query_and_media_type_identify_an_answer() -> None:
    answers, renderer = AnswerCache(LIMIT), Renderer()
    keys = [key("a"), key("b"), key("a", "x=1"), key("a", "", "text/csv")]
    for one in keys:
        answers.rendered(one, 1, renderer.of(1))
    assert renderer.count == len(keys)


def test_the_least_recently_used_answer_is_evicted_first() -> None:
    answers, renderer = AnswerCache(LIMIT), Renderer()
    for path in "abcdefghi":
        answers.rendered(key(path), 1, renderer.of(1))
    assert kept(answers, "abcdefghij") == "abcdefghi"
    answers.find(key("a"))
    answers.rendered(key("b"), 1, renderer.of(1))
    answers.rendered(key("j"), 1, renderer.of(1))
    assert kept(answers, "abcdefghij") == "abdefghij"


def test_a_large_answer_evicts_no_others_and_only_its_own_earlier_one() -> None:
    answers, small, large = AnswerCache(LIMIT), Renderer(), Renderer(size=LIMIT // 4)
    for path in "ab":
        answers.rendered(key(path), 1, small.of(1))
    for _ in range(2):
        assert len(answers.rendered(key("b"), 2, large.of(2)).body) == LIMIT // 4
    assert (large.count, kept(answers, "ab")) == (2, "a")


def test_the_bytes_in_use_have_room_for_compressed_bodies(draw: random.Random) -> None:
    measured: list[int] = []
    answers, body = AnswerCache(LIMIT, measured.append), draw.randbytes(10_000)
    answer = answers.rendered(key("a"), 1, lambda: Answer(Validators("tag", 1), body))
    assert measured[-1] >= len(answer.body) + len(answer.gzip) > 2 * len(body)
    answers.rendered(key("b"), 1, lambda: Answer(Validators("tag", 1), body, is_packed=True))
    assert measured[-1] - measured[-2] < 2 * len(body)


def test_threads_that_want_the_same_answer_wait_for_the_one_that_renders_it() -> None:
    answers, renderer, meeting = AnswerCache(0), Renderer(), threading.Barrier(2)

    def render_slowly() -> Answer:
        meeting.wait(TIMEOUT)
        # Until the other thread waits, too.
        with suppress(threading.BrokenBarrierError):
            meeting.wait(0.2)
        return renderer.of(1)()

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(answers.rendered, key("a"), 1, render_slowly)
        meeting.wait(TIMEOUT)
        assert answers.rendered(key("a"), 1, renderer.of(1)) is first.result(TIMEOUT)
    assert renderer.count == 1
