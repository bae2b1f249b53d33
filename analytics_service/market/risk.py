"""Risk of a snapshot: debt and collateral by health of accounts (rule 6.8, health bounds), also at assumed prices."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Annotated

import polars as pl

from analytics_service.errors import ParameterInvalid
from analytics_service.market.account_health import Group, Side, unit_of
from analytics_service.market.assets import resolve_id
from analytics_service.market.book import IS_OWING, NEAR, Terms, Valuation
from analytics_service.market.decimals import EXACT, ONE, ZERO, quantize_below_limit, round_decimal, sum_decimals
from analytics_service.market.kinds import AssetId, Count, Number, PriceType, Usd
from analytics_service.market.markets import GlobalConfig
from analytics_service.market.prices import Prices
from analytics_service.market.receipts import following_prices

_PARAMETER = "prices"
# Accounts below this health can be liquidated.
LIQUIDATION = ONE
# Accounts below this health are at risk, unless a request sets another threshold.
AT_RISK = Decimal("1.1")
# The histogram's bounds. The first range begins with 0, and the last has no end.
BOUNDS = tuple(map(Decimal, ["0.5", "0.8", "0.9", "0.95", "1", "1.05", "1.1", "1.25", "1.5", "2", "3", "5", "10"]))


@dataclass(frozen=True, slots=True)
class PriceChange:
    """An assumed price of an asset (named by symbol or id): a change in percent, or USD."""

    name: str
    number: Decimal
    is_percent: bool


@dataclass(frozen=True, slots=True)
class AssumedPrice:
    """A price that is assumed instead of the oracle's, or follows from an assumed price."""

    asset_id: Annotated[str, AssetId("The asset")]
    price: Annotated[Decimal | None, PriceType("USD for one standard unit; null if there is no price")]
    assumed_price: Annotated[Decimal, PriceType("Assumed price, or the price that follows from an assumed one")]


def change_prices(price: Decimal, percent: Decimal) -> Decimal:
    """A price after a change in percent, at most 18 decimals."""
    return round_decimal(EXACT.multiply(price, EXACT.scaleb(EXACT.add(percent, 100), -2)))


def assume_prices(changes: Iterable[PriceChange], valuation: Valuation) -> dict[str, Decimal]:
    """The assumed prices by asset id. An assumed price of a token that follows its origin's price becomes a price of
    the origin.

    EntityNotFound for an unknown name. ParameterInvalid for a symbol of several assets, an asset that is named twice, a
    change of a price that does not exist, and a price of 10^20 or more.
    """
    result: dict[str, Decimal] = {}
    for change in changes:
        asset_id, price = _assume(change, valuation)
        if asset_id in result:
            raise ParameterInvalid(_PARAMETER, f"{change.name[:100]!r} names an asset whose price is already given")
        if quantize_below_limit(price) is None:
            raise ParameterInvalid(_PARAMETER, f"the price of {change.name[:100]!r} must be below 10^20")
        result[asset_id] = round_decimal(price)
    return result


def _assume(change: PriceChange, valuation: Valuation) -> tuple[str, Decimal]:
    """The asset whose price changes, and its assumed price."""
    named = resolve_id(change.name, valuation.terms.assets, _PARAMETER)
    if not change.is_percent:
        asset_id, ratio = valuation.base_of(named)
        if not ratio:
            raise ParameterInvalid(_PARAMETER, f"{change.name[:100]!r} redeems nothing, so its price is always 0")
        return asset_id, EXACT.divide(change.number, ratio)
    asset_id = valuation.underlying(named)
    if (present := valuation.known.get(asset_id)) is None:
        raise ParameterInvalid(_PARAMETER, f"{change.name[:100]!r} has no price to change; give one in USD")
    return asset_id, change_prices(present, change.number)


def assumed_prices(named: Collection[str], before: Prices, after: Prices) -> Sequence[AssumedPrice]:
    """The named assets, and assets whose prices follow theirs, in the order of ids."""
    return [
        AssumedPrice(asset_id, before.get(asset_id), price)
        for asset_id, price in sorted(after.items())
        if price is not None and (asset_id in named or before.get(asset_id) != price)
    ]


@dataclass(frozen=True, slots=True)
class AccountTotals:
    """Sums over borrow accounts."""

    accounts: Annotated[int, Count("Borrow accounts with debt")]
    collateral_value: Annotated[Decimal, Usd("USD value of their collateral")]
    debt_value: Annotated[Decimal, Usd("USD value of their debt")]


@dataclass(frozen=True, slots=True)
class BadDebt:
    """Debt that collateral does not cover."""

    accounts: Annotated[int, Count("Borrow accounts whose debt is worth more than their collateral")]
    value: Annotated[Decimal, Usd("USD by which their debt exceeds their collateral")]


@dataclass(frozen=True, slots=True)
class Holdings:
    """Sums over accounts: their number, and the amount in each group in denom units."""

    accounts: int
    amounts: Sequence[int]

    def value(self, valuation: Valuation, side: Side) -> Decimal:
        """The exact USD value of one side, not rounded."""
        return sum_decimals(self.value_in(valuation, group) for group in valuation.book.groups_of(side))

    def value_in(self, valuation: Valuation, group: int) -> Decimal:
        """The exact USD value of one group, not rounded; 0 without a price."""
        return EXACT.multiply(self.amounts[group], valuation.units[group].value)

    def slice(self, valuation: Valuation) -> AccountTotals:
        collateral, debt = (round_decimal(self.value(valuation, side)) for side in ("collateral", "debt"))
        return AccountTotals(self.accounts, collateral, debt)

    def bad_debt(self, valuation: Valuation) -> BadDebt:
        """The excess of debt over collateral."""
        value = EXACT.subtract(self.value(valuation, "debt"), self.value(valuation, "collateral"))
        return BadDebt(self.accounts, round_decimal(value))


@dataclass(frozen=True, slots=True)
class HealthRange:
    """The borrow accounts whose health is in a range."""

    begin: Annotated[Decimal, Number("Lower bound of health, inclusive")]
    end: Annotated[Decimal | None, Number("Upper bound, exclusive; null if there is none")]
    accounts: AccountTotals


@dataclass(frozen=True, slots=True)
class AssetRisk:
    """An asset's collateral or debt in the accounts with debt."""

    asset_id: str
    value: Annotated[Decimal, Usd("USD value in all accounts with debt")]
    at_risk: Annotated[Decimal, Usd("The part in accounts at risk")]
    liquidatable: Annotated[Decimal, Usd("The part in accounts that can be liquidated")]


@dataclass(frozen=True, slots=True)
class Exposure:
    """Collateral and debt whose value changes with an asset's price, in accounts with debt. Includes tokens that
    represent the asset."""

    asset_id: str
    collateral_value: Annotated[Decimal, Usd("USD value of collateral")]
    debt_value: Annotated[Decimal, Usd("USD value of debt")]


@dataclass(frozen=True, slots=True)
class Risk:
    """The accounts of a snapshot by health. Accounts at risk include liquidatable accounts."""

    accounts: Annotated[int, Count("Borrow accounts, with or without debt, except accounts of null health")]
    indebted: AccountTotals
    at_risk: AccountTotals
    liquidatable: AccountTotals
    bad_debt: BadDebt
    unpriced_debt_accounts: Annotated[int, Count("Borrow accounts that owe an asset without a price")]
    unpriced_collateral_accounts: Annotated[
        int,
        Count(
            "Borrow accounts with collateral that has no price (worth 0 if it never had one), and indebted accounts "
            "with a stake that has lost its price"
        ),
    ]
    histogram: Sequence[HealthRange]
    by_collateral: Sequence[AssetRisk]
    by_debt: Sequence[AssetRisk]
    by_price: Sequence[Exposure]
    prices: Sequence[AssumedPrice]


def health_bands(valuation: Valuation, sums: pl.DataFrame, bounds: Sequence[Decimal]) -> pl.DataFrame:
    """The health of accounts, exactly: columns account, band and is_bad. `band` is the number of ascending bounds that
    an account's health reaches; null without debt, or if health is unknown. `is_bad`: debt exceeds collateral. `sums`
    are rows of the valuation's sums."""
    health, debt, excess = pl.col("health"), pl.col("debt"), pl.col("debt") - pl.col("collateral")
    edges = [float(bound) for bound in bounds]
    is_near = [(health - edge).abs() <= edge * NEAR for edge in edges]
    rows = sums.with_columns(health=health_of(valuation.terms.config)).select(
        "account",
        band=pl.when(IS_OWING).then(pl.sum_horizontal((health >= edge).cast(pl.UInt32) for edge in edges)),
        is_bad=IS_OWING & (excess > 0),
        is_near=IS_OWING & pl.any_horizontal(*is_near, excess.abs() <= debt * NEAR),
    )
    near = rows["is_near"].arg_true()
    exact = [valuation.values(account) for account in rows["account"].gather(near)]
    results = [values.health(valuation.terms.config).result for values in exact]
    return rows.select(
        "account",
        band=rows["band"].scatter(near, [bisect_right(bounds, result) for result in results if result is not None]),
        is_bad=rows["is_bad"].scatter(near, [values.debt > values.collateral for values in exact]),
    )


def health_of(config: GlobalConfig) -> pl.Expr:
    """Health (rule 6.4, account health) from the columns of sums, as a float."""
    modifier, ratio = float(config.staking_health_modifier), float(config.stake_collateral_ratio)
    required = pl.col("collateral") * ratio
    part = pl.when(pl.col("staked") >= required).then(1.0).otherwise(pl.col("staked") / required)
    boost = pl.when(pl.col("collateral") > 0).then(part * modifier).otherwise(0.0)
    return pl.col("secured") / pl.col("debt") + boost


def risk_of(valuation: Valuation, threshold: Decimal = AT_RISK, prices: Sequence[AssumedPrice] = ()) -> Risk:
    """The risk at a valuation's prices; `prices` lists assumed prices. Values are exact, rounded to 18 decimals."""
    bounds = sorted({*BOUNDS, threshold})
    bands = _Bands(valuation, health_bands(valuation, valuation.sums, bounds), len(bounds) + 1)

    def below(bound: Decimal) -> Holdings:
        return bands.together(range(bounds.index(bound) + 1))

    indebted, at_risk, liquidatable = bands.together(range(len(bounds) + 1)), below(threshold), below(LIQUIDATION)
    indices = [-1, *map(bounds.index, BOUNDS), len(bounds)]
    ranges = zip((Decimal(0), *BOUNDS), (*BOUNDS, None), pairwise(indices), strict=True)

    def by_asset(side: Side) -> list[AssetRisk]:
        groups: dict[str, list[int]] = {}
        for group in valuation.book.groups_of(side):
            if indebted.amounts[group]:
                groups.setdefault(valuation.book.groups[group].asset_id, []).append(group)

        def value(holdings: Holdings, asset_id: str) -> Decimal:
            return round_decimal(sum_decimals(holdings.value_in(valuation, group) for group in groups[asset_id]))

        return [
            AssetRisk(asset_id, *(value(holdings, asset_id) for holdings in (indebted, at_risk, liquidatable)))
            for asset_id in groups
        ]

    return Risk(
        accounts=valuation.book.opened - int(valuation.unknown.sum()),
        indebted=indebted.slice(valuation),
        at_risk=at_risk.slice(valuation),
        liquidatable=liquidatable.slice(valuation),
        bad_debt=bands.bad.bad_debt(valuation),
        unpriced_debt_accounts=valuation.unpriced("debt"),
        unpriced_collateral_accounts=valuation.unpriced("collateral"),
        histogram=[
            HealthRange(begin, end, bands.together(range(first + 1, last + 1)).slice(valuation))
            for begin, end, (first, last) in ranges
        ],
        by_collateral=by_asset("collateral"),
        by_debt=by_asset("debt"),
        by_price=_exposures(indebted, valuation),
        prices=prices,
    )


def _exposures(holdings: Holdings, valuation: Valuation) -> list[Exposure]:
    """The exposures of accounts, in the order of ids."""
    exposed: dict[str, dict[str, Decimal]] = {}
    for index, group in enumerate(valuation.book.groups):
        if group.side != "stake" and holdings.amounts[index]:
            sides = exposed.setdefault(valuation.underlying(group.asset_id), {"collateral": ZERO, "debt": ZERO})
            sides[group.side] = EXACT.add(sides[group.side], holdings.value_in(valuation, index))
    return [
        Exposure(asset_id, round_decimal(sides["collateral"]), round_decimal(sides["debt"]))
        for asset_id, sides in sorted(exposed.items())
    ]


def near_risk(items: pl.DataFrame, terms: Terms, quoted: Prices, bound: Decimal = AT_RISK) -> pl.DataFrame:
    """The items (see `book_of`) of all accounts whose health is below a bound, or that have an asset that has lost its
    price, and of a few more. This takes a quarter of the time of a book of all accounts. It ignores stakes, which only
    increase health, and allows for amounts that are rounded down."""
    prices = following_prices(quoted, terms.redeemed)
    sides: list[tuple[str, str, float, float, float]] = []
    for asset_id, market in terms.markets.items():
        if (posted := market.collateral) and posted.shares:
            unit = unit_of(Group("collateral", asset_id), terms, prices)
            part = posted.balance / posted.shares
            sides.append(("collateral", asset_id, part, -float(unit.value), float(unit.ltv)))
        if (owed := market.debt) and owed.shares:
            unit = unit_of(Group("debt", asset_id), terms, prices)
            sides.append(("debt", asset_id, owed.balance / owed.shares, float(unit.value), float(bound)))
    schema = {"kind": pl.String, "asset_id": pl.String, "part": pl.Float64, "value": pl.Float64, "factor": pl.Float64}
    amount = pl.col("amount").cast(pl.Float64) * pl.col("part")
    value = pl.col("value") * pl.coalesce(pl.col("liquidation_ltv").cast(pl.Float64), "factor")
    debt = pl.when(value > 0).then(amount * value).otherwise(0)
    secured = pl.when(value < 0).then((amount - 1) * value).otherwise(0)
    account = ["address", "account_index"]
    valued = items.join(pl.DataFrame(sides, schema, orient="row"), on=["kind", "asset_id"])
    sums = valued.group_by(account).agg(debt=debt.sum(), secured=secured.sum())
    near = sums.filter((pl.col("debt") > 0) & (pl.col("debt") * (1 + NEAR) + pl.col("secured") > 0))
    valued_by = pl.when(pl.col("kind") == "stake").then(pl.lit(terms.ptoken.asset_id)).otherwise("asset_id")
    lost = items.filter(valued_by.is_in([asset_id for asset_id, known in prices.items() if known is None]))
    return items.join(pl.concat([near.select(account), lost.select(account)]), on=account, how="semi")


class _Bands:
    """The amounts of all accounts between two bounds of health, by group, separately for accounts with bad debt."""

    def __init__(self, valuation: Valuation, bands_of: pl.DataFrame, bands: int) -> None:
        book = valuation.book
        # The last kind is for accounts without a band.
        kinds = 2 * bands + 1
        kind = (bands_of["band"] * 2 + bands_of["is_bad"].cast(pl.UInt32)).fill_null(2 * bands)
        self._accounts: dict[int, int] = dict(kind.value_counts().iter_rows())
        sums = [0] * (len(book.groups) * kinds)
        slots = book.items["group"] * kinds + kind.gather(book.items["account"])
        for slot, amount in zip(slots, book.amounts, strict=True):
            sums[slot] += amount
        self._sums = [sums[begin : begin + kinds] for begin in range(0, len(sums), kinds)]
        self.bad = self._of(range(1, 2 * bands, 2))

    def together(self, bands: Iterable[int]) -> Holdings:
        return self._of([2 * band + is_bad for band in bands for is_bad in (0, 1)])

    def _of(self, kinds: Sequence[int]) -> Holdings:
        return Holdings(
            sum(self._accounts.get(kind, 0) for kind in kinds), [sum(map(row.__getitem__, kinds)) for row in self._sums]
        )
