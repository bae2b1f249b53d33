"""What could be liquidated at other prices of one asset (rule 6.8)."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate
from typing import Annotated

import polars as pl

from analytics_service.market.assumptions import changed
from analytics_service.market.book import Book, Valuation
from analytics_service.market.health import Unit, unit_at
from analytics_service.market.health_bands import HealthBands, Holdings, Slice, health_bands
from analytics_service.market.kinds import Price, Ratio, Usd
from analytics_service.market.risk import LIQUIDATION
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
    sums = _Sums(valuation, steps)
    others = valuation.book.numbers.filter(~sums.is_moving)
    stays = health_bands(valuation, valuation.sums.filter(~sums.is_moving), [LIQUIDATION], others)
    moves = [health_bands(step, sums.at(step), [LIQUIDATION], sums.accounts) for step in steps]
    below = _together(valuation.book, stays, moves, lambda bands: (bands.band == 0).fill_null(False))
    bad = _together(valuation.book, stays, moves, lambda bands: bands.is_bad)
    return Ladder(
        asset_id,
        price,
        [
            Step(EXACT.scaleb(change, -2), step.known[asset_id], liquidatable.slice(step), owing.bad_debt(step).value)
            for change, step, liquidatable, owing in zip(changes, steps, below, bad, strict=True)
        ],
    )


class _Sums:
    """The values of the accounts that have or owe something whose price moves: sums of what stays, and of what is
    proportional to each price that moves. `is_moving` tells which accounts these are."""

    def __init__(self, valuation: Valuation, steps: Sequence[Valuation]) -> None:
        prices, book = valuation.known, valuation.book
        moved = {name for step in steps for name in {*prices, *step.known} if prices.get(name) != step.known.get(name)}
        names = [group.priced_by(valuation.terms) for group in book.groups]
        self.is_moving = book.having(index for index, name in enumerate(names) if name in moved)
        self.accounts = book.numbers.filter(self.is_moving)
        self._fixed = self._of(
            book, [Unit() if name in moved else unit for name, unit in zip(names, valuation.units, strict=True)]
        )
        self._moving = {
            name: self._of(
                book,
                [
                    unit_at(group, valuation.terms, ONE if own == name else ZERO)
                    for group, own in zip(book.groups, names, strict=True)
                ],
            )
            for name in moved.intersection(names)
        }

    def _of(self, book: Book, units: Sequence[Unit]) -> pl.DataFrame:
        return book.sums(units).filter(self.is_moving)

    def at(self, step: Valuation) -> pl.DataFrame:
        """The columns of `Valuation.sums` at a step. They are no line in prices where a receipt token has no price,
        because it redeems too little or too much for one."""
        if not self._moving.keys() <= step.known.keys():
            return step.sums.filter(self.is_moving)
        sums = self._fixed
        for name, moving in self._moving.items():
            sums = sums + moving * float(step.known[name])
        return sums.with_columns(is_known=~step.unknown.filter(self.is_moving))


def _together(
    book: Book, stays: HealthBands, moves: Sequence[HealthBands], is_member: Callable[[HealthBands], pl.Series]
) -> Iterator[Holdings]:
    """The members together at each step. Of accounts that move, only those that come or go since the step before are
    added or subtracted."""
    staying = stays.accounts.filter(is_member(stays))
    changes = [pl.DataFrame({"account": staying}).with_columns(comes=True, step=0)]
    members = [is_member(bands) for bands in moves]
    before = pl.zeros(moves[0].accounts.len(), pl.Boolean, eager=True)
    for step, (bands, now) in enumerate(zip(moves, members, strict=True)):
        moved = (now != before).arg_true()
        frame = pl.DataFrame({"account": bands.accounts.gather(moved), "comes": now.gather(moved)})
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
