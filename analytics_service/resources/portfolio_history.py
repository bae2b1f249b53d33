"""/api/v1/users/{address}/history: the portfolio of an address over time."""

from collections.abc import Mapping, Sequence

import falcon
import polars as pl

from analytics_service.errors import EntityNotFound, ParameterInvalid
from analytics_service.history.candles import Aggregate, Fill, difference
from analytics_service.history.formats.base import Points, shorten_digits
from analytics_service.history.page import Page, Query, require_few
from analytics_service.history.reader import HistoryReader
from analytics_service.http import params
from analytics_service.market.kinds import DECIMAL
from analytics_service.market.portfolio import OF_ACCOUNTS, WITH_STAKES, portfolio_metrics
from analytics_service.market.sums import TOTAL
from analytics_service.present.series import SINGLE_SERIES
from analytics_service.resources.history import Pages
from analytics_service.resources.snapshots import Arguments, Asked, Rendered, SharedState, require_states_kept
from analytics_service.state.portfolio_history import PortfolioAt, Taken
from analytics_service.state.view import View


class PortfolioHistory(Pages):
    """A path that answers what an address had at the end of each bucket (rule 6.9, portfolio history)."""

    summary = "History of an address: net value, collateral, debt, deposits, health, or debt divided by collateral."
    shape = SINGLE_SERIES
    path = (params.ADDRESS,)
    query = (params.METRIC, params.ACCOUNT, *params.RANGE_OF_ADDRESS, params.FORMAT)
    datasets = ("positions", "markets", "prices")

    def __init__(self, shared: SharedState, prices: HistoryReader) -> None:
        super().__init__(shared)
        self._prices = prices

    def ask(self, req: falcon.Request, path: Mapping[str, str]) -> Asked:
        """A page. Raises ParameterInvalid for a metric that borrow accounts lack, and for too many buckets, which are
        calculated one by one."""
        arguments = self.parse(req, path)
        query = self.page(req, arguments, params.MAX_BUCKETS)
        require_few(query, 1, params.MAX_BUCKETS)
        if arguments["account_index"] is not None and arguments["metric"] not in OF_ACCOUNTS:
            raise ParameterInvalid("account_index", f"needs one of these metrics: {', '.join(OF_ACCOUNTS)}")

        def datasets(view: View) -> tuple[str, ...]:
            """Without the protocol token if the metric needs none, or no snapshot has one."""
            has_token = arguments["metric"] in WITH_STAKES and view.heads.has("ptoken")
            return (*self.datasets, *(["ptoken"] if has_token else []))

        def render(view: View) -> Rendered:
            used = datasets(view)
            heads = view.heads_of(used)
            page, taken = self._page(view, arguments, query, used)
            as_of = {dataset: taken[dataset] for dataset in used if dataset in taken}
            names = (arguments["address"], arguments["metric"], arguments["account_index"])
            name = "-".join(str(name) for name in names if name is not None)
            return self.rendered(req, page, as_of, heads, min(head.at for head in heads), name)

        return self.asked(req, arguments, query, datasets, render)

    def _page(self, view: View, arguments: Arguments, query: Query, datasets: Sequence[str]) -> tuple[Page, Taken]:
        """The page, and the snapshots behind its last value. Raises EntityNotFound for an account that the address did
        not have in the range, and Lost if rows are lost that value the address from the page's first bucket on."""
        first = query.starts[0] - 1 if query.starts else query.last
        first = min(first, *(head.newest for head in view.heads_of(datasets)))
        _require_kept(view, dict.fromkeys(datasets, first), query)
        # The first delta starts at the end of the bucket before.
        before = [begin - 1 for begin in query.begins[:1] if query.agg is Aggregate.DELTA]
        ends = [*before, *(min(after - 1, query.end) for after in query.begins[1:])]
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
        return Page(query, body, as_of=None), last.taken


def _require_kept(view: View, since: Mapping[str, int], query: Query) -> None:
    """Raises Lost if rows of datasets are lost since their instants in `since`, unix seconds. Prices are checked when
    they are read."""
    for dataset, first in since.items():
        require_states_kept(view, dataset, first, query.last)


def _is_shown(fill: Fill, begin: int, taken: int, newest: int) -> bool:
    """Whether a bucket has a value; `taken` is the instant of its snapshot of positions. All in unix seconds."""
    return taken >= begin if fill is Fill.NONE else fill is Fill.LAST or begin <= newest


def _has_account(then: PortfolioAt, index: int) -> bool:
    return then.portfolio is not None and any(one.index == index for one in then.portfolio.accounts)
