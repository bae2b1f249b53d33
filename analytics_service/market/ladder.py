"""The liquidatable debt at other prices of one asset (rule 6.8, health bounds)."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate
from typing import Annotated

import polars as pl

from analytics_service.market.account_health import Unit, unit_at
from analytics_service.market.book import Book, Valuation
from analytics_service.market.decimals import EXACT, ONE, ZERO
from analytics_service.market.kinds import PriceType, Ratio, Usd
from analytics_service.market.risk import LIQUIDATION, AccountTotals, Holdings, change_prices, health_bands


@dataclass(frozen=True, slots=True)
class Step:
    """The liquidatable accounts at a price of the asset. Prices of tokens that follow it change with it."""

    change: Annotated[Decimal, Ratio("Change of the price")]
    price: Annotated[Decimal, PriceType("The price")]
    liquidatable: AccountTotals
    bad_debt: Annotated[Decimal, Usd("USD by which debt exceeds collateral, over all borrow accounts")]


@dataclass(frozen=True, slots=True)
class Ladder:
    """An asset, its price, and steps of the price."""

    asset_id: str
    price: Annotated[Decimal, PriceType("USD for one standard unit now")]
    steps: Sequence[Step]


def ladder_of(
    valuation: Valuation, asset_id: str, changes: Sequence[Decimal], following: Collection[str] = ()
) -> Ladder:
    """Steps of an asset's price by `changes` in percent. The prices of the assets `following` change by the same
    percentages. All of these assets must have a price.

    Values are exact: each step adds or subtracts only the items of accounts that pass a bound since the step before.
    """
    price = valuation.known[asset_id]
    present = {name: valuation.known[name] for name in (asset_id, *following)}
    quotes = [{name: change_prices(usd, change) for name, usd in present.items()} for change in changes]
    steps = [replace(valuation, quoted={**valuation.quoted, **quoted}) for quoted in quotes]
    is_variable, sums = _sums_at(steps, valuation)
    fixed = health_bands(valuation, valuation.sums.filter(~is_variable), [LIQUIDATION])
    variable = [health_bands(step, rows, [LIQUIDATION]) for step, rows in zip(steps, sums, strict=True)]
    below, bad = (
        _together(valuation.book, fixed, variable, member) for member in (pl.col("band") == 0, pl.col("is_bad"))
    )
    return Ladder(
        asset_id,
        price,
        [
            Step(EXACT.scaleb(change, -2), step.known[asset_id], liquidatable.slice(step), owing.bad_debt(step).value)
            for change, step, liquidatable, owing in zip(changes, steps, below, bad, strict=True)
        ],
    )


def _sums_at(steps: Sequence[Valuation], present: Valuation) -> tuple[pl.Series, Iterator[pl.DataFrame]]:
    """The accounts with an item of variable price, and their sums at each step: a fixed part, and a slope for each
    variable price, which are computed once."""
    book, terms, prices = present.book, present.terms, present.known
    changed = {name for step in steps for name in {*prices, *step.known} if prices.get(name) != step.known.get(name)}
    named = [(group, group.priced_by(terms), unit) for group, unit in zip(book.groups, present.units, strict=True)]
    is_variable = book.having(index for index, (_, name, _) in enumerate(named) if name in changed)
    accounts = is_variable.arg_true().alias("account")
    fixed = book.sums([Unit() if name in changed else unit for _, name, unit in named]).filter(is_variable)
    slopes = {
        variable: book.sums([unit_at(group, terms, ONE if name == variable else ZERO) for group, name, _ in named])
        for variable in changed & {name for _, name, _ in named}
    }
    slopes = {name: slope.filter(is_variable) for name, slope in slopes.items()}

    def at(step: Valuation) -> pl.DataFrame:
        # Sums are not linear where a receipt token has no price because it redeems too little or too much.
        if not slopes.keys() <= step.known.keys():
            return step.sums.filter(is_variable)
        sums = fixed
        for name, slope in slopes.items():
            sums = sums + slope * float(step.known[name])
        return sums.with_columns(accounts, is_known=~step.unknown.filter(is_variable))

    return is_variable, map(at, steps)


def _together(
    book: Book, fixed: pl.DataFrame, variable: Sequence[pl.DataFrame], is_member: pl.Expr
) -> Iterator[Holdings]:
    """The members together at each step. Adds or subtracts only variable accounts that join or leave at the step."""
    always = fixed.filter(is_member)["account"]
    changes = [pl.DataFrame({"account": always}).with_columns(comes=True, step=0)]
    members = [bands.select(is_member.fill_null(False)).to_series() for bands in variable]
    before = pl.zeros(variable[0].height, pl.Boolean, eager=True)
    for step, (bands, now) in enumerate(zip(variable, members, strict=True)):
        changed = (now != before).arg_true()
        frame = pl.DataFrame({"account": bands["account"].gather(changed), "comes": now.gather(changed)})
        changes.append(frame.with_columns(step=step))
        before = now
    added = [[0] * len(variable) for _ in book.groups]
    rows = book.items.with_row_index("item").join(pl.concat(changes), on="account")
    columns = (rows[name].to_list() for name in ("item", "group", "step", "comes"))
    for item, group, step, comes in zip(*columns, strict=True):
        added[group][step] += book.amounts[item] if comes else -book.amounts[item]
    sums = [list(accumulate(steps)) for steps in added]
    for step, now in enumerate(members):
        yield Holdings(always.len() + int(now.sum()), [row[step] for row in sums])
