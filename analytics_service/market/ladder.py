"""What could be liquidated at other prices of one asset (rule 6.8)."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate
from typing import Annotated

import polars as pl

from analytics_service.market.assumptions import changed
from analytics_service.market.book import Book, Valuation
from analytics_service.market.health import Unit, unit_at
from analytics_service.market.kinds import Price, Ratio, Usd
from analytics_service.market.risk import LIQUIDATION, Holdings, Slice, health_bands
from analytics_service.market.values import EXACT, ONE, ZERO


@dataclass(frozen=True, slots=True)
class Step:
    """What is liquidatable at a price of the asset. Tokens that are priced by it move with it."""

    change: Annotated[Decimal, Ratio("Change of the price")]
    price: Annotated[Decimal, Price("The price")]
    liquidatable: Slice
    bad_debt: Annotated[Decimal, Usd("USD by which debt exceeds collateral, over all borrow accounts")]


@dataclass(frozen=True, slots=True)
class Ladder:
    """An asset, its price, and steps of the price."""

    asset_id: str
    price: Annotated[Decimal, Price("USD for one standard unit now")]
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
        replace(valuation, quoted={**valuation.quoted, **{name: changed(usd, change) for name, usd in moving.items()}})
        for change in changes
    ]
    below: list[pl.Series] = []
    bad: list[pl.Series] = []
    for step, sums in zip(steps, _sums_at(steps, valuation), strict=True):
        bands = health_bands(step, sums, [LIQUIDATION])
        below.append((bands.band == 0).fill_null(False))
        bad.append(bands.is_bad)
    together = zip(_together(valuation.book, below), _together(valuation.book, bad), strict=True)
    return Ladder(
        asset_id,
        price,
        [
            Step(EXACT.scaleb(change, -2), step.known[asset_id], liquidatable.slice(step), owing.bad_debt(step).value)
            for change, step, (liquidatable, owing) in zip(changes, steps, together, strict=True)
        ],
    )


def _sums_at(steps: Sequence[Valuation], present: Valuation) -> Iterator[pl.DataFrame]:
    """The sums of each step: of what stays, and of what is proportional to each price that moves, which are made once.
    They are no line in prices where a receipt token has no price, because it redeems too little or too much for one."""
    book, terms, prices = present.book, present.terms, present.known
    moved = {name for step in steps for name in {*prices, *step.known} if prices.get(name) != step.known.get(name)}
    names = [group.priced_by(terms) for group in book.groups]
    named = [*zip(book.groups, names, present.units, strict=True)]
    fixed = book.sums([Unit() if name in moved else unit for _, name, unit in named])
    slopes = {
        moving: book.sums([unit_at(group, terms, ONE if name == moving else ZERO) for group, name, _ in named])
        for moving in moved.intersection(names)
    }
    for step in steps:
        if not slopes.keys() <= step.known.keys():
            yield step.sums
            continue
        sums = fixed
        for name, slope in slopes.items():
            sums = sums + slope * float(step.known[name])
        yield sums.with_columns(is_known=~step.unknown)


def _together(book: Book, members: Sequence[pl.Series]) -> Iterator[Holdings]:
    """The members together at each step. Only those that come or go since the step before are added or subtracted."""
    changes: list[pl.DataFrame] = []
    before = pl.zeros(book.accounts.height, pl.Boolean, eager=True)
    for step, now in enumerate(members):
        moved = (now != before).arg_true()
        changes.append(pl.DataFrame({"account": moved, "comes": now.gather(moved)}).with_columns(step=step))
        before = now
    added = [[0] * len(members) for _ in book.groups]
    rows = book.items.with_row_index("item").join(pl.concat(changes), on="account")
    columns = (rows[name].to_list() for name in ("item", "group", "step", "comes"))
    for item, group, step, comes in zip(*columns, strict=True):
        added[group][step] += book.amounts[item] if comes else -book.amounts[item]
    sums = [list(accumulate(steps)) for steps in added]
    for step, now in enumerate(members):
        yield Holdings(int(now.sum()), [row[step] for row in sums])
