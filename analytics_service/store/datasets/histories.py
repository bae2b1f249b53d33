"""The list of all histories. Views, routes, memory, warming, imports and the OpenAPI document follow from it."""

from dataclasses import dataclass, field

from analytics_service.market.kinds import ColumnType, Number, PriceType, Rate, Ratio, Usd


@dataclass(frozen=True, slots=True)
class HistoryRoute:
    """The path of a history below /api/v1, and its one-line description."""

    path: str
    summary: str


@dataclass(frozen=True, slots=True)
class History:
    """A kind of history: rows of the tables `observation` and `rollup`, and a view of its name for people.

    `value` names the view's column of values, `kind` is their column type, and `meaning` describes a value, with its
    unit. Values of a `cumulative` history never decrease, and those of a `signed` one may be negative. `by_asset` is
    the path of a series for each asset, `total` the path of the single series over all assets, which has an empty asset
    id. A history without paths has only this.
    """

    name: str
    dataset: str
    meaning: str
    value: str = "usd"
    kind: ColumnType = field(default_factory=Usd)
    by_asset: HistoryRoute | None = None
    total: HistoryRoute | None = None
    cumulative: bool = False
    signed: bool = False

    @property
    def slug(self) -> str:
        """The history's name in commands."""
        return self.name.removesuffix("_usd").replace("_", "-")

    @property
    def paths(self) -> list[HistoryRoute]:
        return [path for path in (self.by_asset, self.total) if path]


PRICES = History(
    "price",
    "prices",
    "USD per standard unit of the asset",
    value="price",
    kind=PriceType(),
    by_asset=HistoryRoute("/assets/price-history", "History of prices."),
)
LEND_RATES = History(
    "lend_rate",
    "rates",
    "Yearly rate that lenders of the asset earn, without compounding, as a fraction: 0.05 means 5 %",
    value="apr",
    kind=Rate(),
    by_asset=HistoryRoute("/markets/lend/rate-history", "History of lend APRs."),
)
BORROW_RATES = History(
    "borrow_rate",
    "rates",
    "Yearly rate that borrowers of the asset owe, without compounding, as a fraction: 0.05 means 5 %",
    value="apr",
    kind=Rate(),
    by_asset=HistoryRoute("/markets/borrow/rate-history", "History of borrow APRs."),
)
LOANS = History(
    "loans_originated",
    "loans",
    "USD value of all loans so far, each valued at its time",
    by_asset=HistoryRoute(
        "/analytics/market/history/loans-originated/by-asset", "Cumulative value of the loans of each asset, in USD."
    ),
    total=HistoryRoute("/analytics/market/history/loans-originated", "Cumulative value of all loans, in USD."),
    cumulative=True,
)
LIQUIDATIONS = History(
    "liquidations",
    "loans",
    "USD value of all debt that liquidations have repaid so far, each valued at its time",
    by_asset=HistoryRoute(
        "/analytics/market/history/liquidations/by-asset",
        "Cumulative value of the debt that liquidations have repaid, by asset, in USD.",
    ),
    total=HistoryRoute(
        "/analytics/market/history/liquidations",
        "Cumulative value of the debt that liquidations have repaid, in USD.",
    ),
    cumulative=True,
)
FLASH_LOANS = History(
    "flash_loans", "loans", "USD value of all flash loans so far, each valued at its time", cumulative=True
)
TVL = History(
    "tvl",
    "markets",
    "USD value of all deposits and collateral, other than receipt tokens",
    total=HistoryRoute("/markets/history/tvl", "History of the total value locked, in USD."),
)
NET_TVL = History(
    "net_tvl",
    "markets",
    "The total value locked less the USD value of all debt",
    total=HistoryRoute("/markets/history/net-tvl", "History of the total value locked less debt, in USD."),
    signed=True,
)
DEPOSITS = History(
    "deposits_usd",
    "markets",
    "USD value of deposits for lending, other than receipt tokens",
    by_asset=HistoryRoute("/markets/history/deposits", "History of deposits for lending, in USD."),
)
COLLATERAL = History(
    "collateral_usd",
    "markets",
    "USD value of the collateral posted",
    by_asset=HistoryRoute("/markets/history/collateral", "History of collateral posted, in USD."),
)
DEBT = History(
    "debt_usd",
    "markets",
    "USD value of the debt, with interest",
    by_asset=HistoryRoute("/markets/history/debt", "History of debt with interest, in USD."),
)
UTILIZATION = History(
    "utilization",
    "markets",
    "Debt divided by the principal owed to lenders, as a fraction: 0.5 means 50 %",
    value="ratio",
    kind=Ratio(),
    by_asset=HistoryRoute("/markets/history/utilization", "History of debt divided by deposits."),
)
DEBT_AT_RISK = History(
    "debt_at_risk",
    "positions",
    "USD value of the debt of borrow accounts whose health is below 1.1",
    total=HistoryRoute(
        "/analytics/market/history/debt-at-risk", "History of debt in accounts with a health below 1.1, in USD."
    ),
)
ACCOUNTS_AT_RISK = History(
    "accounts_at_risk",
    "positions",
    "Number of borrow accounts whose health is below 1.1",
    value="accounts",
    kind=Number(),
    total=HistoryRoute(
        "/analytics/market/history/accounts-at-risk", "History of the number of accounts with a health below 1.1."
    ),
)
LIQUIDATABLE_DEBT = History(
    "liquidatable_debt",
    "positions",
    "USD value of the debt of borrow accounts that can be liquidated, because their health is below 1",
    total=HistoryRoute(
        "/analytics/market/history/liquidatable-debt", "History of debt that can be liquidated, in USD."
    ),
)
BAD_DEBT = History(
    "bad_debt",
    "positions",
    "USD value by which the debt of borrow accounts exceeds their collateral",
    total=HistoryRoute(
        "/analytics/market/history/bad-debt", "History of debt that exceeds its account's collateral, in USD."
    ),
)
HISTORIES = (
    PRICES,
    LEND_RATES,
    BORROW_RATES,
    LOANS,
    LIQUIDATIONS,
    FLASH_LOANS,
    TVL,
    NET_TVL,
    DEPOSITS,
    COLLATERAL,
    DEBT,
    UTILIZATION,
    DEBT_AT_RISK,
    ACCOUNTS_AT_RISK,
    LIQUIDATABLE_DEBT,
    BAD_DEBT,
)
# Totals in USD that are observed.
TOTALS = tuple(history for history in HISTORIES if history.value == "usd" and (history.total or not history.by_asset))
# Histories by asset of each snapshot of markets; if in USD, their values add up to a total.
OF_MARKETS = tuple(history for history in HISTORIES if history.dataset == "markets" and history.by_asset)
SUMMED = tuple(history for history in OF_MARKETS if isinstance(history.kind, Usd))


def names_of(dataset: str) -> list[str]:
    """The names of a dataset's histories."""
    return [history.name for history in HISTORIES if history.dataset == dataset]
