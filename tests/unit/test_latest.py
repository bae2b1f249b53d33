"""A question is asked in a thread, and nobody waits for an answer that does not come."""

import threading

import pytest
from polars.exceptions import PanicException

from analytics_service.errors import StoreUnavailable
from analytics_service.state.latest import Latest


def test_each_question_is_asked_anew() -> None:
    answers = iter([1, 2])
    latest = Latest(lambda: next(answers), patience=10)
    assert [latest.get(), latest.get()] == [(1, None, False), (2, None, False)]


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
    assert [latest.get(), latest.get()] == [(1, None, True), (1, None, True)]
    goes_on.set()
    assert len(asked) == 2


def test_a_failure_leaves_the_answer_before_it() -> None:
    failing = False

    def ask() -> str:
        if failing:
            raise StoreUnavailable("It is away.")
        return "there"

    latest = Latest(ask, patience=10)
    assert latest.get() == ("there", None, False)
    failing = True
    kept, error, late = latest.get()
    assert (kept, str(error), late) == ("there", "It is away.", False)


@pytest.mark.parametrize("failure", [ZeroDivisionError, PanicException])
def test_an_unexpected_error_is_logged_and_told_without_its_text(
    failure: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def ask() -> str:
        raise failure("secret")

    value, error, late = Latest(ask, patience=10).get()
    assert (value, str(error), late) == (None, "An unexpected error; the log has it.", False)
    assert f"{failure.__name__}: secret" in caplog.text


def test_a_later_answer_ends_the_error() -> None:
    answers = iter([StoreUnavailable("It is away."), None])

    def ask() -> int:
        if error := next(answers):
            raise error
        return 1

    latest = Latest(ask, patience=10)
    assert latest.get().error is not None
    assert latest.get() == (1, None, False)


@pytest.mark.parametrize("patience", [0.0, 10.0])
def test_there_is_nothing_before_the_first_answer(patience: float) -> None:
    goes_on = threading.Event()

    def ask() -> int:
        if not patience:
            goes_on.wait(60)
        raise StoreUnavailable("It is away.")

    value, _, late = Latest(ask, patience).get()
    assert (value, late) == (None, not patience)
    goes_on.set()


def test_an_answer_holds_for_a_while_even_if_it_is_an_error() -> None:
    clock = iter([100.0, 103.9, 104.0, 107.9, 108.0])
    asked = 0

    def ask() -> int:
        nonlocal asked
        asked += 1
        if asked == 2:
            raise StoreUnavailable("It is away.")
        return asked

    latest = Latest(ask, patience=10, holds=4.0, clock=lambda: next(clock))
    answers = [latest.get() for _ in range(5)]
    assert [(value, error is None) for value, error, _ in answers] == [
        (1, True),
        (1, True),
        (1, False),
        (1, False),
        (3, True),
    ]


def test_nobody_waits_for_a_question_that_was_asked_too_long_ago() -> None:
    """The second caller comes a minute after the question was asked, by the clock of the test."""
    clock = iter([100.0, 160.0])
    begun, goes_on = threading.Event(), threading.Event()

    def ask() -> None:
        begun.set()
        goes_on.wait(60)

    latest = Latest(ask, patience=60, clock=lambda: next(clock))
    first = threading.Thread(target=latest.get)
    first.start()
    begun.wait(60)
    assert latest.get() == (None, None, True)
    assert first.is_alive()
    goes_on.set()
    first.join()
