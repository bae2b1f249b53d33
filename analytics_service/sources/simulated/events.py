"""Events of the simulated protocol: the trades of its users, and flash loans."""

from collections.abc import Iterator
from decimal import Decimal

from analytics_service.market.instants import instant
from analytics_service.market.loans import Event, EventKind
from analytics_service.market.positions import Position
from analytics_service.market.values import usd_value
from analytics_service.sources.simulated import prices
from analytics_service.sources.simulated.accrual import accrued
from analytics_service.sources.simulated.clock import HOUR, LAUNCH
from analytics_service.sources.simulated.draws import Draws
from analytics_service.sources.simulated.holdings import position, trade, traded_at, units
from analytics_service.sources.simulated.noise import UNIT
from analytics_service.sources.simulated.people import USERS, profile, user_address
from analytics_service.sources.simulated.terms import TERMS
from analytics_service.sources.simulated.universe import LISTINGS

_LISTINGS = {listing.asset.id: listing for listing in LISTINGS}
_BORROWED = tuple(asset_id for asset_id, terms in TERMS.items() if terms.debt)
# Length of a slot in seconds, and the most flash loans in one.
_FLASH_SLOT = 6 * HOUR
_FLASH_MOST = 3
# One in this many reductions of debt is a liquidation instead of a repayment.
_LIQUIDATED_EVERY = 12


def events(seed: str, after: int, until: int) -> list[Event]:
    """Events of the seconds after `after` up to `until`, oldest first. The cost grows with the range."""
    found = [*_trades(seed, after, until), *_flash_loans(seed, after, until)]
    return sorted(found, key=lambda event: (event.at, event.id))


def _trades(seed: str, after: int, until: int) -> Iterator[Event]:
    for number in range(USERS):
        user = profile(seed, number)
        for made in range(max(trade(user, after) + 1, 0), trade(user, until) + 1):
            yield from _trade(seed, number, made)


def _trade(seed: str, number: int, made: int) -> Iterator[Event]:
    """What a user borrowed, repaid, lent and redeemed in one trade."""
    second = traded_at(profile(seed, number), made)
    draws = Draws(f"{seed}|event|{number}|{made}")
    now = position(seed, number, made)
    before = position(seed, number, made - 1) if made else None
    changes = [*_debt_changes(now, before), *_lend_changes(now, before)]
    for item, (gain, loss, asset_id, change) in enumerate(changes):
        index = accrued(seed, asset_id, second)
        debt = gain is EventKind.BORROW
        amount = abs(change) * (index.debt_index if debt else index.lend_index) // UNIT
        forced = debt and draws.below(_LIQUIDATED_EVERY) == 0
        kind = gain if change > 0 else EventKind.LIQUIDATION if forced else loss
        if amount:
            yield _event(seed, f"{number}-{made}-{item}", kind, asset_id, now.address, second, amount)


_Change = tuple[EventKind, EventKind, str, int]


def _debt_changes(now: Position, before: Position | None) -> Iterator[_Change]:
    """For each debt: the kinds of an increase and of a decrease, the asset id, and the change of shares."""
    for place, account in enumerate(now.accounts):
        for item, debt in enumerate(account.debts):
            had = before.accounts[place].debts[item].shares if before else 0
            yield EventKind.BORROW, EventKind.REPAY, debt.asset_id, debt.shares - had


def _lend_changes(now: Position, before: Position | None) -> Iterator[_Change]:
    """The same for each deposit, in receipt tokens."""
    for item, lent in enumerate(now.lends):
        old = before.lends[item] if before else None
        had = old.held + old.collateralized if old else 0
        yield EventKind.LEND, EventKind.REDEEM, lent.asset_id, lent.held + lent.collateralized - had


def _flash_loans(seed: str, after: int, until: int) -> Iterator[Event]:
    # None in the first slot: the protocol's first loan is not a flash loan.
    first = max((after - LAUNCH) // _FLASH_SLOT, 1)
    for slot in range(first, (until - LAUNCH) // _FLASH_SLOT + 1):
        draws = Draws(f"{seed}|flash|{slot}")
        for item in range(draws.below(_FLASH_MOST + 1)):
            second = LAUNCH + slot * _FLASH_SLOT + draws.below(_FLASH_SLOT)
            asset_id, borrower = draws.pick(_BORROWED), user_address(draws.below(USERS))
            amount = units(seed, asset_id, draws.sized(500_000, 9), second)
            if after < second <= until:
                yield _event(seed, f"flash-{slot}-{item}", EventKind.FLASH_LOAN, asset_id, borrower, second, amount)


def _event(seed: str, event_id: str, kind: EventKind, asset_id: str, address: str, second: int, amount: int) -> Event:
    listing = _LISTINGS[asset_id]
    price: Decimal = prices.usd(seed, listing, second)
    value = usd_value(amount, listing.asset.decimals_denom, price)
    return Event(event_id, kind, asset_id, address, instant(second), amount, value)
