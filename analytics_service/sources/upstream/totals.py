"""Sums over all of upstream's users, of whom only those of followed addresses are asked for one by one."""

from datetime import datetime

from analytics_service.market.events import Sum, Totals
from analytics_service.market.instants import instant, unix_second
from analytics_service.market.positions import Activity
from analytics_service.sources.upstream.client import Refused
from analytics_service.sources.upstream.history import Histories
from analytics_service.sources.upstream.state import Asker, NoPast
from analytics_service.store.histories import LIQUIDATIONS, LOANS, History
from analytics_service.store.observations import TOTAL

_STATE = "/analytics/market/state"


def read_activity(asker: Asker) -> Activity:
    """The number of users of the markets."""
    state = asker.get(_STATE).data
    names = ("borrower_active", "borrower_account_active", "lender_active")
    return Activity(*(state[name].whole() for name in names))


def read_interest(asker: Asker) -> dict[str, int]:
    """The interest that was paid to lenders of each asset so far; nothing if upstream does not tell it."""
    try:
        assets = asker.get(_STATE).data["assets"]
    except NoPast:
        return {}
    except Refused as error:
        if error.lacks_path:
            return {}
        raise
    return assets.by_asset(lambda item: item["lend_interest_paid"].whole())


def read_totals(asker: Asker, histories: Histories, at: datetime) -> Totals:
    """The values of all loans, flash loans and liquidations, from the newest state and the histories."""
    state = asker.get(_STATE).data
    loans = state["loans_originated"]
    by_asset = loans["breakdown"].by_asset(lambda item: item["value"].usd())
    # Of an instant after upstream's newest snapshot there would be no value.
    shown = instant(max(asker.snapshots, default=unix_second(at)))
    return Totals(
        loans=Sum(loans["total_value"].usd(), by_asset),
        liquidations=_liquidations(histories, shown),
        flash_loans=state["flash_loan_volume_total"].usd(),
    )


def read_past_totals(asker: Asker, histories: Histories, at: datetime) -> Totals:
    """The same as of the past, from histories; flash loans only if upstream tells its past state."""
    try:
        flash_loans = asker.get(_STATE).data["flash_loan_volume_total"].usd()
    except NoPast:
        flash_loans = None
    return Totals(_sum(histories, LOANS, at), _liquidations(histories, at), flash_loans)


def _liquidations(histories: Histories, at: datetime) -> Sum | None:
    """The values of all liquidations; None if upstream has no such history, which is an extension."""
    try:
        return _sum(histories, LIQUIDATIONS, at)
    except Refused as error:
        if error.lacks_path:
            return None
        raise


def _sum(histories: Histories, history: History, at: datetime) -> Sum | None:
    """The values of a history; None before its first."""
    assert history.total
    assert history.by_asset
    total = histories.values(history.total.path, at)
    return Sum(total[TOTAL], histories.values(history.by_asset.path, at)) if total else None
