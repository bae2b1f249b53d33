"""How long readers trust what they know of the ledger."""

import threading

import polars as pl
import pytest

from analytics_service.config import Settings
from analytics_service.errors import NoSnapshot, StoreUnavailable
from analytics_service.store.connection import Store
from analytics_service.store.heads import Heads, Known
from analytics_service.store.ledger import read_heads


class Ledger(Store):
    """A store whose ledger has one family, and which can be away."""

    def __init__(self) -> None:
        super().__init__(Settings())
        self.version = 1
        self.rewriting = False
        self.away = False
        self.reads = 0

    def frame(self, query: str, parts: object = (), **parameters: object) -> pl.DataFrame:
        """The run that rewrites history, if one does, or the one head there is."""
        if self.away:
            raise StoreUnavailable("away")
        if query == "publications":
            self.reads += 1
            self.look()
            rows = [("prices", 59, 0)] if self.rewriting else []
            return pl.DataFrame(rows, schema=["family", "heard_at", "dead"], orient="row")
        self.look_again()
        newest = {"at": 60, "last_observed_at": 60, "version": self.version, "runs": self.version}
        return pl.DataFrame({"family": "prices", **newest})

    def look(self) -> None:
        """Called when somebody begins to read it."""

    def look_again(self) -> None:
        """Called when the announcements were read, and the heads were not."""


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def heads_at(ledger: Ledger, now: list[float]) -> Heads:
    return Heads(ledger, clock=lambda: now[0])


def test_the_ledger_is_read_about_once_a_second(ledger: Ledger) -> None:
    now = [100.0]
    heads = heads_at(ledger, now)
    assert heads.get("prices").version == 1
    ledger.version, now[0] = 2, 100.7
    assert (heads.get("prices").version, ledger.reads) == (1, 1)
    now[0] = 100.75
    assert (heads.get("prices").version, ledger.reads) == (2, 2)


def test_without_the_store_what_is_known_holds_for_five_minutes(ledger: Ledger) -> None:
    now = [100.0]
    heads = heads_at(ledger, now)
    heads.get("prices")
    ledger.away = True
    now[0] = 399.9
    assert heads.get("prices").version == 1
    for now[0] in (400.0, 401.0, 5000.0):
        with pytest.raises(StoreUnavailable):
            heads.get("prices")
    ledger.away, ledger.version = False, 3
    now[0] += 1
    assert heads.get("prices").version == 3


def test_a_service_that_never_saw_the_store_has_nothing_to_hold_on_to(ledger: Ledger) -> None:
    ledger.away = True
    with pytest.raises(StoreUnavailable):
        heads_at(ledger, [0.0]).get("prices")


def test_a_family_without_a_snapshot_is_told_by_name(ledger: Ledger) -> None:
    with pytest.raises(NoSnapshot, match="loans"):
        heads_at(ledger, [0.0]).get("loans")


def test_while_one_thread_reads_others_go_on_with_what_is_known(ledger: Ledger) -> None:
    now = [100.0]
    heads = heads_at(ledger, now)
    heads.get("prices")
    seen = []

    class Slow(Ledger):
        def look(self) -> None:
            seen.append(heads.get("prices").version)

    slow = Slow()
    slow.version = 2
    heads._store = slow
    now[0] = 100.9
    assert heads.get("prices").version == 2
    assert seen == [1]


def test_nobody_goes_on_with_what_was_known_a_second_ago(ledger: Ledger) -> None:
    """The other thread is given time to answer too early, and must not."""
    now = [100.0]
    heads = heads_at(ledger, now)
    heads.get("prices")
    seen = []
    other = threading.Thread(target=lambda: seen.append(heads.get("prices").version))

    class Slow(Ledger):
        def look(self) -> None:
            other.start()
            other.join(0.1)

    slow = Slow()
    slow.version = 2
    heads._store = slow
    now[0] = 101.0
    assert heads.get("prices").version == 2
    other.join()
    assert seen == [2]


def test_what_a_slow_ledger_answers_is_as_old_as_the_question(ledger: Ledger) -> None:
    """Reading takes 0.6 s, and another run is completed right after it began."""
    now = [100.0]

    class Slow(Ledger):
        def look_again(self) -> None:
            now[0] += 0.6

    slow = Slow()
    heads = heads_at(slow, now)
    assert heads.get("prices").version == 1
    slow.version, now[0] = 2, 101.1
    assert heads.get("prices").version == 2


def test_who_waits_for_a_slow_ledger_is_not_told_what_it_knew_long_before(ledger: Ledger) -> None:
    """One thread reads for 5 s; a run is completed meanwhile, and more than a second later another thread asks."""
    now = [100.0]
    heads = heads_at(ledger, now)
    heads.get("prices")
    seen = []

    def ask() -> None:
        asking.set()
        seen.append(heads.get("prices").version)

    asking = threading.Event()
    other = threading.Thread(target=ask)

    class Slow(Ledger):
        def look_again(self) -> None:
            known.append(self.version)
            if len(known) == 1:
                now[0] += 4.0
                other.start()
                asking.wait()
                other.join(0.1)
                now[0] += 1.0

        def frame(self, query: str, parts: object = (), **parameters: object) -> pl.DataFrame:
            rows = super().frame(query, parts, **parameters)
            if query == "snapshot_heads" and len(known) == 1:
                rows = rows.with_columns(version=pl.lit(1, pl.Int64))
                self.version = 2
            return rows

    known: list[int] = []
    heads._store = Slow()
    now[0] = 101.0
    heads.get("prices")
    other.join()
    assert seen == [2]


def steady_at(ledger: Ledger, now: list[float]) -> Heads:
    """Heads whose pauses pass the time."""

    def pause(seconds: float) -> None:
        now[0] += seconds

    return Heads(ledger, clock=lambda: now[0], pause=pause)


def test_a_quick_read_costs_no_second_look_at_the_ledger(ledger: Ledger) -> None:
    heads = steady_at(ledger, [100.0])
    assert heads.steadily(["prices"], lambda known: known["prices"].version) == 1
    assert ledger.reads == 1


def test_nothing_is_read_while_history_is_rewritten(ledger: Ledger) -> None:
    now = [100.0]
    heads = steady_at(ledger, now)
    ledger.rewriting = True

    class Ending(Ledger):
        def look(self) -> None:
            self.rewriting = now[0] < 103.0

    heads._store = Ending()
    assert heads.steadily(["prices"], lambda known: now[0]) == pytest.approx(103.0, abs=0.1)
    assert heads.steadily(["rates"], lambda known: "other families do not wait") == "other families do not wait"


def test_a_run_that_ends_while_the_ledger_is_read_is_not_missed(ledger: Ledger) -> None:
    """Seen as ended, with the heads from before it: readers would mix what it wrote with what they knew."""

    class Ending(Ledger):
        def look_again(self) -> None:
            self.version, self.rewriting = 2, False

    ending = Ending()
    ending.rewriting = True
    known = read_heads(ending)["prices"]
    assert (known.version, known.rewriting) == (2, True)


def test_a_rewriting_that_does_not_end_is_told(ledger: Ledger) -> None:
    ledger.rewriting = True
    with pytest.raises(StoreUnavailable, match="rewritten"):
        steady_at(ledger, [100.0]).steadily(["prices"], lambda known: None)


@pytest.mark.parametrize("begins", ["announced", "completed"])
def test_a_read_that_a_rewriting_may_have_overtaken_is_repeated(ledger: Ledger, begins: str) -> None:
    """The read takes 1.6 s: a run that announced itself right after the last look may have begun by then."""
    now = [100.0]
    heads = steady_at(ledger, now)
    reads = []

    def read(known: Known) -> int:
        reads.append(known["prices"].version)
        if len(reads) == 1:
            now[0] += 1.6
            ledger.version += begins == "completed"
            ledger.rewriting = begins == "announced"
        return len(reads)

    def end(seconds: float) -> None:
        now[0] += seconds
        ledger.rewriting = False

    heads._pause = end
    assert heads.steadily(["prices"], read) == 2
    assert reads == [1, 2 if begins == "completed" else 1]


def test_a_slow_read_that_nothing_overtook_stands(ledger: Ledger) -> None:
    now = [100.0]

    def read(known: Known) -> int:
        now[0] += 30
        return known["prices"].version

    assert steady_at(ledger, now).steadily(["prices"], read) == 1
    assert ledger.reads == 2


def test_others_wait_for_the_ledger_when_what_is_known_is_stale(ledger: Ledger) -> None:
    """After an idle hour no thread may go on with heads of an hour ago."""
    now = [100.0]
    heads = heads_at(ledger, now)
    heads.get("prices")
    now[0] += 3600
    answers: list[int] = []
    entered, go_on = threading.Event(), threading.Event()

    class Slow(Ledger):
        def look(self) -> None:
            entered.set()
            go_on.wait(10)
            self.version = 2

    heads._store = Slow()
    threads = [threading.Thread(target=lambda: answers.append(heads.get("prices").version)) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert entered.wait(10)
    go_on.set()
    for thread in threads:
        thread.join()
    assert answers == [2, 2, 2]
