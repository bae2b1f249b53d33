"""/api/v1/users/{address}/history: the portfolio of an address over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import falcon
import polars as pl

from analytics_service.errors import EntityNotFound, ParameterInvalid
from analytics_service.history.candles import Aggregate, Fill, difference
from analytics_service.history.formats.base import Points, shorten_digits
from analytics_service.history.page import Query, require_few
from analytics_service.history.reader import HistoryReader
from analytics_service.http import params
from analytics_service.market.kinds import DECIMAL
from analytics_service.market.portfolio import OF_ACCOUNTS, WITH_STAKES, portfolio_metrics
from analytics_service.market.sums import TOTAL
from analytics_service.present.series import SINGLE_SERIES
from analytics_service.resources.history import Pages
from analytics_service.resources.snapshots import Arguments, SharedState
from analytics_service.state.portfolio_history import PortfolioAt, Taken
from analytics_service.state.view import View
from analytics_service.store.datasets.assets import ASSETS_DATASET
from analytics_service.store.datasets.histories import names_of
from analytics_service.store.losses import require_kept


@dataclass(frozen=True, slots=True)
class PortfolioPage:
    """A page of encoded buckets, and the snapshots behind its last value."""

    query: Query
    body: bytes
    taken: Taken


class PortfolioHistory(Pages):
    """A path that answers what an address had at the end of each bucket (rule 6.9, portfolio history)."""

    summary = "History of an address: net value, collateral, debt, deposits, health, or debt divided by collateral."
    shape = SINGLE_SERIES
    path = (params.ADDRESS,)
    query = (params.METRIC, params.ACCOUNT, *params.RANGE_OF_ADDRESS, params.FORMAT)
    datasets = ("positions", "markets", "prices")
    points = params.MAX_BUCKETS

    def __init__(self, shared: SharedState, prices: HistoryReader) -> None:
        super().__init__(shared)
        self._prices = prices

    def parse(self, req: falcon.Request, path: Mapping[str, str]) -> dict[str, Any]:
        """All parameters, and the `page`. Raises ParameterInvalid for a metric that borrow accounts lack, and for too
        many buckets, which are calculated one by one."""
        arguments = super().parse(req, path)
        require_few(arguments["page"], 1, params.MAX_BUCKETS)
        if arguments["account_index"] is not None and arguments["metric"] not in OF_ACCOUNTS:
            raise ParameterInvalid("account_index", f"needs one of these metrics: {', '.join(OF_ACCOUNTS)}")
        return arguments

    def file_name(self, arguments: Arguments) -> str:
        named = (arguments["address"], arguments["metric"], arguments["account_index"])
        return "-".join(str(name) for name in named if name is not None)

    def made_from(self, view: View, arguments: Arguments) -> tuple[str, ...]:
        """The datasets, without the protocol token if the metric needs none, or no snapshot has one."""
        has_token = arguments["metric"] in WITH_STAKES and view.heads.has("ptoken")
        return (*self.datasets, *(["ptoken"] if has_token else []))

    def record(self, view: View, arguments: Arguments) -> PortfolioPage:
        """The page. Raises EntityNotFound for an account that the address did not have in the range."""
        query: Query = arguments["page"]
        # The first delta starts at the end of the bucket before.
        before = [begin - 1 for begin in query.begins[:1] if query.agg is Aggregate.DELTA]
        ends = [*before, *(min(after - 1, query.end) for after in query.begins[1:])]
        datasets = self.made_from(view, arguments)
        *portfolio_history, last = view.portfolio_history(arguments["address"], [*ends, query.last], self._prices)
        _require_kept(view, portfolio_history[0].taken if portfolio_history else {}, query)
        account = arguments["account_index"]
        if account is not None and not any(_has_account(then, account) for then in portfolio_history[len(before) :]):
            raise EntityNotFound(f"account_index: {account} names no borrow account of this address in this range.")
        values = pl.Series(
            "v",
            [
                portfolio_metrics(arguments["metric"], then.portfolio, account) if then.portfolio and end >= 0 else None
                for end, then in zip(ends, portfolio_history, strict=True)
            ],
            DECIMAL,
        )
        if before:
            values = difference(values[1:], values[:-1])
        newest = view.head("positions").at
        taken = [then.taken.get("positions", -1) for then in portfolio_history[len(before) :]]
        is_shown = [_is_shown(query.fill, begin, at, newest) for begin, at in zip(query.starts, taken, strict=True)]
        values = values.set(~pl.Series(is_shown, dtype=pl.Boolean), None)
        view.require_unchanged(datasets)
        shown = shorten_digits(values.to_frame("v"), query.digits)
        body = query.format.encode(Points(query.starts, [TOTAL], shown, single=True, zone=query.zone))
        return PortfolioPage(
            query, body, {dataset: last.taken[dataset] for dataset in datasets if dataset in last.taken}
        )

    def require_kept(self, view: View, arguments: Arguments, datasets: Sequence[str]) -> None:
        """Raises Lost if rows are lost that value the address from the page's first bucket on."""
        query: Query = arguments["page"]
        first = query.starts[0] - 1 if query.starts else query.last
        _require_kept(
            view, dict.fromkeys(datasets, min(first, *(head.newest for head in view.heads_of(datasets)))), query
        )

    def as_of(self, record: PortfolioPage, view: View, arguments: Arguments) -> dict[str, int]:
        """The newest instant of each dataset up to the end of the page."""
        return dict(record.taken)

    def closes_at(self, view: View, arguments: Arguments) -> int | None:
        """When jobs can no longer change the page, if it ends before the newest snapshot of each dataset."""
        query: Query = arguments["page"]
        newest = min(head.at for head in view.heads_of(self.made_from(view, arguments)))
        return self.settled_at(query.last + 1) if query.is_closed(newest) else None


def _require_kept(view: View, since: Mapping[str, int], query: Query) -> None:
    """Raises Lost if rows of datasets are lost since their instants in `since`, unix seconds. Except for definitions of
    assets, losses of histories do not count: prices are checked when they are read."""
    for dataset, first in since.items():
        lost = (
            loss for loss in view.losses(dataset) if dataset == ASSETS_DATASET or loss.what not in names_of(dataset)
        )
        require_kept(lost, first, query.last + 1)


def _is_shown(fill: Fill, begin: int, taken: int, newest: int) -> bool:
    """Whether a bucket has a value; `taken` is the instant of its snapshot of positions. All in unix seconds."""
    return taken >= begin if fill is Fill.NONE else fill is Fill.LAST or begin <= newest


def _has_account(then: PortfolioAt, index: int) -> bool:
    return then.portfolio is not None and any(one.index == index for one in then.portfolio.accounts)
