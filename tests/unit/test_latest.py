"""A question is asked in a thread, and nobody waits for an answer that does not come."""

import threading

import pytest

from analytics_service.errors import StoreUnavailable
from analytics_service.state.latest import Latest


def test_each_question_is_asked_anew() -> None:
    answers = iter([1, 2])
    latest = Latest(lambda: next(answers), patience=10)
    assert [latest.get(), latest.get()] == [(1, True), (2, True)]


def test_an_answer_that_takes_too_long_is_not_waited_for_and_is_asked_for_once() -> None:
    asked: list[int] = []
    goes_on = threading.Event()

    def ask() -> int:
        asked.append(1)
        if len(asked) == 2:
            goes_on.wait(60)
        return len(asked)

    latest = Latest(ask, patience=0.05)
    first = latest.get().value
    while first is None:
        first = latest.get().value
    assert [latest.get(), latest.get()] == [(1, False), (1, False)]
    goes_on.set()
    assert len(asked) == 2


def test_a_failure_leaves_the_answer_before_it() -> None:
    failing = False

    def ask() -> str:
        if failing:
            raise StoreUnavailable("It is away.")
        return "there"

    latest = Latest(ask, patience=10)
    assert latest.get() == ("there", True)
    failing = True
    assert latest.get() == ("there", False)


@pytest.mark.parametrize("patience", [0.0, 10.0])
def test_there_is_nothing_before_the_first_answer(patience: float) -> None:
    goes_on = threading.Event()

    def ask() -> int:
        if not patience:
            goes_on.wait(60)
        raise StoreUnavailable("It is away.")

    assert Latest(ask, patience).get() == (None, False)
    goes_on.set()
