"""How long readers trust what they know of the ledger."""

import polars as pl
import pytest

from analytics_service.config import Settings
from analytics_service.errors import NoSnapshot, StoreUnavailable
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Heads


class Ledger(Store):
    """A store whose ledger has one family, and which can be away."""

    def __init__(self) -> None:
        super().__init__(Settings())
        self.version = 1
        self.away = False
        self.reads = 0

    def frame(self, query: str, parts: object = (), **parameters: object) -> pl.DataFrame:
        """The one head there is."""
        self.reads += 1
        if self.away:
            raise StoreUnavailable("away")
        return pl.DataFrame({"family": "prices", "at": 60, "last_observed_at": 60, "version": self.version})


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def heads_at(ledger: Ledger, now: list[float]) -> Heads:
    return Heads(ledger, clock=lambda: now[0])


def test_the_ledger_is_read_at_most_once_a_second(ledger: Ledger) -> None:
    now = [100.0]
    heads = heads_at(ledger, now)
    assert heads.get("prices").version == 1
    ledger.version, now[0] = 2, 100.9
    assert (heads.get("prices").version, ledger.reads) == (1, 1)
    now[0] = 101.0
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
        def frame(self, query: str, parts: object = (), **parameters: object) -> pl.DataFrame:
            seen.append(heads.get("prices").version)
            return super().frame(query)

    slow = Slow()
    slow.version = 2
    heads._store = slow
    now[0] = 102.0
    assert heads.get("prices").version == 2
    assert seen == [1]
