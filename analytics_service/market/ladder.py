"""What could be liquidated at other prices of one asset (rule 6.8)."""

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
    """What is liquidatable at a price of the asset. Tokens that are priced by it move with it."""

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
    """The steps of the price of an asset that has one; `changes` are in percent of it. The prices of assets `following`
    it change by the same percentage; they have one, too.

    Values are exact: from one step to the next, only what accounts have and owe that pass a bound is added or
    subtracted.
    """
    price = valuation.known[asset_id]
    moving = {name: valuation.known[name] for name in (asset_id, *following)}
    steps = [
        replace(
            valuation, quoted={**valuation.quoted, **{name: change_prices(usd, change) for name, usd in moving.items()}}
        )
        for change in changes
    ]
    is_moving, sums = _sums_at(steps, valuation)
    stays = health_bands(valuation, valuation.sums.filter(~is_moving), [LIQUIDATION])
    moves = [health_bands(step, moving, [LIQUIDATION]) for step, moving in zip(steps, sums, strict=True)]
    below, bad = (_together(valuation.book, stays, moves, member) for member in (pl.col("band") == 0, pl.col("is_bad")))
    return Ladder(
        asset_id,
        price,
        [
            Step(EXACT.scaleb(change, -2), step.known[asset_id], liquidatable.slice(step), owing.bad_debt(step).value)
            for change, step, liquidatable, owing in zip(changes, steps, below, bad, strict=True)
        ],
    )


def _sums_at(steps: Sequence[Valuation], present: Valuation) -> tuple[pl.Series, Iterator[pl.DataFrame]]:
    """Which accounts have or owe something whose price moves, and their sums at each step: of what stays, and of what
    is proportional to each price that moves, which are made once."""
    book, terms, prices = present.book, present.terms, present.known
    moved = {name for step in steps for name in {*prices, *step.known} if prices.get(name) != step.known.get(name)}
    named = [(group, group.priced_by(terms), unit) for group, unit in zip(book.groups, present.units, strict=True)]
    is_moving = book.having(index for index, (_, name, _) in enumerate(named) if name in moved)
    accounts = is_moving.arg_true().alias("account")
    fixed = book.sums([Unit() if name in moved else unit for _, name, unit in named]).filter(is_moving)
    slopes = {
        moving: book.sums([unit_at(group, terms, ONE if name == moving else ZERO) for group, name, _ in named]).filter(
            is_moving
        )
        for moving in moved & {name for _, name, _ in named}
    }

    def at(step: Valuation) -> pl.DataFrame:
        # No line in prices where a receipt token has none, because it redeems too little or too much for one.
        if not slopes.keys() <= step.known.keys():
            return step.sums.filter(is_moving)
        sums = fixed
        for name, slope in slopes.items():
            sums = sums + slope * float(step.known[name])
        return sums.with_columns(accounts, is_known=~step.unknown.filter(is_moving))

    return is_moving, map(at, steps)


def _together(book: Book, stays: pl.DataFrame, moves: Sequence[pl.DataFrame], is_member: pl.Expr) -> Iterator[Holdings]:
    """The members together at each step. Of accounts that move, only those that come or go since the step before are
    added or subtracted."""
    staying = stays.filter(is_member)["account"]
    changes = [pl.DataFrame({"account": staying}).with_columns(comes=True, step=0)]
    members = [bands.select(is_member.fill_null(False)).to_series() for bands in moves]
    before = pl.zeros(moves[0].height, pl.Boolean, eager=True)
    for step, (bands, now) in enumerate(zip(moves, members, strict=True)):
        moved = (now != before).arg_true()
        frame = pl.DataFrame({"account": bands["account"].gather(moved), "comes": now.gather(moved)})
        changes.append(frame.with_columns(step=step))
        before = now
    added = [[0] * len(moves) for _ in book.groups]
    rows = book.items.with_row_index("item").join(pl.concat(changes), on="account")
    columns = (rows[name].to_list() for name in ("item", "group", "step", "comes"))
    for item, group, step, comes in zip(*columns, strict=True):
        added[group][step] += book.amounts[item] if comes else -book.amounts[item]
    sums = [list(accumulate(steps)) for steps in added]
    for step, now in enumerate(members):
        yield Holdings(staying.len() + int(now.sum()), [row[step] for row in sums])
