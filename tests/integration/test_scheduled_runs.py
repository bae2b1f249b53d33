"""Which scheduled snapshots are missing, by the ledger."""

from analytics_service.store.connection import Store
from analytics_service.store.job_runs import ScheduledRun, scheduled_runs
from analytics_service.store.ledger import LEDGER, Run, ledger_frame
from tests.integration.routes import NOON


def test_gaps_are_instants_between_scheduled_snapshots_that_have_none(store: Store) -> None:
    """Of prices, each minute from NOON + 2: minutes 4, 5 and 7 are missing; a backfill has added minute 5.

    Snapshots at other seconds count for the minute they are in. What was filled in before the first scheduled one, and
    what is older than asked for, does not count. Rates were never scheduled.
    """

    def run(family: str, second: int, kind: str, version: int = 1) -> Run:
        return Run(family, NOON + second, kind, NOON, NOON, 1, "test", version)

    minutes = {0: "backfill", 120: "job", 180: "job", 190: "job", 300: "backfill", 360: "job", 495: "job"}
    prices = [
        run("prices", second, kind, version=10**9 * (NOON + second) + 250_000_000) for second, kind in minutes.items()
    ]
    others = [run("prices", -3600, "job"), run("prices", 1000, "import"), run("rates", 0, "backfill")]
    store.insert(LEDGER, ledger_frame([*prices, *others]))
    intervals = {"prices": 60, "rates": 60, "loans": 300}
    scheduled = scheduled_runs(store, intervals, NOON - 60 + 86_400)
    assert scheduled == [ScheduledRun("prices", NOON + 495, rows=1, lag=0.25, missing=2)]
    assert scheduled_runs(store, {}, NOON) == []
