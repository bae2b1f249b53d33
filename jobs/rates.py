"""Lend and borrow rates of each asset."""

from analytics_service.market.rates import Rates
from analytics_service.store.commits import Appended, Commit
from analytics_service.store.datasets.histories import BORROW_RATES, LEND_RATES
from analytics_service.store.datasets.observations import Values, observations_of
from jobs.snapshot import JobContext


def collect(context: JobContext) -> Commit:
    """The rates of the source's markets at the instants. SourceError if it has none."""
    return Commit([Appended(at, observations_of(_values(context.rates(at)), at)) for at in context.instants])


def _values(rates: Rates) -> Values:
    return {LEND_RATES: rates.lend, BORROW_RATES: rates.borrow}
