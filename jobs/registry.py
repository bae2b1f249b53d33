"""Every job there is."""

from collections.abc import Callable
from dataclasses import dataclass

from analytics_service.config import Settings
from jobs import loans, markets, positions, prices, ptoken, rates, routes
from jobs.snapshot import Collect, each


@dataclass(frozen=True, slots=True)
class Job:
    """Takes snapshots of a family of data. `every` answers seconds; `history` says whether the past can be added."""

    name: str
    help: str
    family: str
    collect: Collect
    every: Callable[[Settings], int]
    history: bool = False


JOBS = {
    job.name: job
    for job in (
        Job(
            name="prices",
            help="Definitions of assets and their oracle prices.",
            family="prices",
            collect=each(prices.collect),
            every=lambda settings: settings.prices_every,
            history=True,
        ),
        Job(
            name="rates",
            help="Lend and borrow rates.",
            family="rates",
            collect=each(rates.collect),
            every=lambda settings: settings.rates_every,
            history=True,
        ),
        Job(
            name="markets",
            help="Lend, collateral and debt markets and the rules of borrowing.",
            family=markets.FAMILY,
            collect=markets.collect,
            every=lambda settings: settings.markets_every,
        ),
        Job(
            name="loans",
            help="Events of lending and the loans originated.",
            family=loans.FAMILY,
            collect=loans.collect,
            every=lambda settings: settings.loans_every,
            history=True,
        ),
        Job(
            name="ptoken",
            help="The protocol token, its staking pools and unlock arrangements.",
            family="ptoken",
            collect=each(ptoken.collect),
            every=lambda settings: settings.ptoken_every,
        ),
        Job(
            name="positions",
            help="Accounts, stakes and wallets of all addresses.",
            family=positions.FAMILY,
            collect=positions.collect,
            every=lambda settings: settings.positions_every,
        ),
        Job(
            name="routes",
            help="Routes of swap contracts.",
            family="routes",
            collect=each(routes.collect),
            every=lambda settings: settings.routes_every,
        ),
    )
}
