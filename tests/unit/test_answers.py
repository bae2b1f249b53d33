"""Which answers are kept, for how long, and who makes them."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from analytics_service.errors import EntityNotFound
from analytics_service.http.answer import Answer, Label
from analytics_service.http.answers import Answers, Asked
from analytics_service.http.coding import IDENTITY, Coding

# Room for nine bodies of 10,000 bytes and what goes with them, and not for ten.
BOUND = 100_000
WAIT = 10


def asked(path: str, query: str = "", coding: Coding = IDENTITY) -> Asked:
    return Asked(path, query, coding)


class Made:
    """Makes answers of a size, and counts them."""

    def __init__(self, size: int = 10_000) -> None:
        self.count = 0
        self._size = size

    def of(self, state: int) -> Callable[[], Answer]:
        def make() -> Answer:
            self.count += 1
            return Answer(Label("tag", state), IDENTITY, b"a" * self._size)

        return make


def kept(answers: Answers, paths: str) -> str:
    """Which of the paths an answer is kept for; asked without being used."""
    return "".join(path for path in paths if asked(path) in answers._kept)


def test_the_same_question_is_answered_once_a_state() -> None:
    answers, made = Answers(BOUND), Made()
    first = answers.get(asked("a"), 1, made.of(1))
    assert answers.get(asked("a"), 1, made.of(1)) is first
    assert answers.find(asked("a")) is first
    second = answers.get(asked("a"), 2, made.of(2))
    assert made.count == 2
    assert answers.find(asked("a")) is second


def test_path_query_and_coding_make_a_question() -> None:
    answers, made = Answers(BOUND), Made()
    questions = [asked("a"), asked("b"), asked("a", "x=1"), asked("a", "", Coding("gzip"))]
    for question in questions:
        answers.get(question, 1, made.of(1))
    assert made.count == len(questions)
    assert asked("a", "x=1", Coding("gzip")).plain == asked("a", "x=1")


def test_what_was_not_used_for_longest_goes_first() -> None:
    answers, made = Answers(BOUND), Made()
    for path in "abcdefghi":
        answers.get(asked(path), 1, made.of(1))
    assert kept(answers, "abcdefghij") == "abcdefghi"
    answers.find(asked("a"))
    answers.get(asked("j"), 1, made.of(1))
    assert kept(answers, "abcdefghij") == "acdefghij"


def test_another_state_takes_the_place_of_the_one_before() -> None:
    answers, made = Answers(BOUND), Made()
    for state in range(50):
        answers.get(asked("a"), state, made.of(state))
        answers.get(asked("b"), 0, made.of(0))
    assert made.count == 51
    assert kept(answers, "ab") == "ab"


def test_what_is_asked_counts_too() -> None:
    answers, made = Answers(BOUND), Made(size=10)
    for number in range(1000):
        answers.get(asked("a", f"{number:08000}"), 1, made.of(1))
    # 9,011 bytes each.
    assert len(answers._kept) == 11


def test_one_answer_does_not_take_the_place_of_all_others() -> None:
    answers, small, large = Answers(BOUND), Made(), Made(size=BOUND // 4)
    answers.get(asked("a"), 1, small.of(1))
    for _ in range(2):
        assert len(answers.get(asked("b"), 1, large.of(1)).body) == BOUND // 4
    assert (large.count, kept(answers, "ab")) == (2, "a")


def test_a_bound_of_nothing_keeps_nothing() -> None:
    answers, made = Answers(0), Made(size=0)
    for _ in range(3):
        answers.get(asked("a"), 1, made.of(1))
    assert (made.count, answers.find(asked("a"))) == (3, None)


def test_a_failure_is_told_and_not_kept() -> None:
    answers, made = Answers(BOUND), Made()

    def fail() -> Answer:
        raise EntityNotFound("nothing of that name")

    for _ in range(2):
        with pytest.raises(EntityNotFound):
            answers.get(asked("a"), 1, fail)
    answers.get(asked("a"), 1, made.of(1))
    assert made.count == 1


class Watched:
    """A state that tells how often it was looked for."""

    def __init__(self) -> None:
        self._looks = threading.Semaphore(0)

    def __hash__(self) -> int:
        self._looks.release()
        return 1

    def __eq__(self, other: object) -> bool:
        return self is other

    def seen(self, times: int) -> bool:
        """Wait until it was looked for that often."""
        return all(self._looks.acquire(timeout=WAIT) for _ in range(times))


class Slow:
    """Makes an answer when it is let, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.begun, self.let = threading.Event(), threading.Event()
        self.count = 0
        self._error = error

    def __call__(self) -> Answer:
        self.count += 1
        self.begun.set()
        assert self.let.wait(WAIT)
        if self._error:
            raise self._error
        return Answer(Label("tag", 1), IDENTITY, b"slow")


def asked_by_four(answers: Answers, slow: Slow) -> list[Future[Answer]]:
    """What four threads get that all ask before the answer is made."""
    state = Watched()
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(answers.get, asked("a"), state, slow)
        # The first looks whether it is being made, and says that it is.
        assert state.seen(2)
        others = [pool.submit(answers.get, asked("a"), state, slow) for _ in range(3)]
        assert state.seen(3)
        slow.let.set()
    return [first, *others]


@pytest.mark.parametrize("bound", [BOUND, 0])
def test_while_one_thread_makes_an_answer_those_that_ask_the_same_wait_for_it(bound: int) -> None:
    slow = Slow()
    got = asked_by_four(Answers(bound), slow)
    assert slow.count == 1
    assert len({id(one.result()) for one in got}) == 1


def test_those_that_wait_are_told_of_a_failure() -> None:
    slow = Slow(EntityNotFound("nothing of that name"))
    got = asked_by_four(Answers(BOUND), slow)
    assert slow.count == 1
    assert all(isinstance(one.exception(), EntityNotFound) for one in got)


def test_other_questions_and_other_states_do_not_wait() -> None:
    answers, slow, made = Answers(BOUND), Slow(), Made()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(answers.get, asked("a"), 1, slow)
        assert slow.begun.wait(WAIT)
        answers.get(asked("b"), 1, made.of(1))
        answers.get(asked("a"), 2, made.of(2))
        assert made.count == 2
        slow.let.set()
        assert first.result(WAIT).body == b"slow"
