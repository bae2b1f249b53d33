"""Events of the simulated protocol: the acts of its users with the prices of their time, and flash loans."""

from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256

from analytics_service.market.events import Action, Event
from analytics_service.market.instants import DAY, HOUR, instant
from analytics_service.market.values import EXACT, rounded, usd_value
from analytics_service.sources.simulated import prices
from analytics_service.sources.simulated.accrual import accrued
from analytics_service.sources.simulated.acts import MARKETS, Act, trade_acts
from analytics_service.sources.simulated.clock import LAUNCH
from analytics_service.sources.simulated.draws import Draws
from analytics_service.sources.simulated.holdings import trade, units
from analytics_service.sources.simulated.noise import UNIT
from analytics_service.sources.simulated.people import RICH_ADDRESS, USERS, contract_address, profile, user_address
from analytics_service.sources.simulated.terms import CONFIG, LENT
from analytics_service.sources.simulated.token import unlock_acts
from analytics_service.sources.simulated.universe import ASSETS, LISTINGS

_ASSETS = {asset.id: asset for asset in ASSETS}
_WAR_CHEST = contract_address("war chest")
# Seconds between claims of the fees in the war chest by the rich user.
_WAR_CHEST_INTERVAL = 30 * DAY
# Length of a slot in seconds, and its maximum of flash loans.
_FLASH_SLOT = 6 * HOUR
_FLASH_MAX = 3
_FLASH_FEE = int(CONFIG.flash_loan_fee * UNIT)


def events(seed: str, after: int, until: int) -> list[Event]:
    """Events of the seconds after `after` up to `until`, oldest first. The cost grows with the range."""
    other_acts = (*_flash_loans(seed, after, until), *_war_chest(seed, until), *unlock_acts(until))
    acts = (*_trades(seed, after, until), *(act for act in other_acts if after < act.second <= until))
    return sorted((_priced(seed, act) for act in acts), key=lambda event: (event.at, event.id))


def _trades(seed: str, after: int, until: int) -> Iterator[Act]:
    for number in range(USERS):
        user = profile(seed, number)
        for made in range(max(trade(user, after) + 1, 0), trade(user, until) + 1):
            yield from trade_acts(seed, number, made)


def _flash_loans(seed: str, after: int, until: int) -> Iterator[Act]:
    # None in the first slot: the protocol's first loan is not a flash loan.
    first = max((after - LAUNCH) // _FLASH_SLOT, 1)
    for slot in range(first, (until - LAUNCH) // _FLASH_SLOT + 1):
        draws = Draws(f"{seed}|flash|{slot}")
        for item in range(draws.below(_FLASH_MAX + 1)):
            second = LAUNCH + slot * _FLASH_SLOT + draws.below(_FLASH_SLOT)
            asset_id, borrower = draws.pick(LENT), user_address(draws.below(USERS))
            amount = units(seed, asset_id, draws.sized(500_000, 9), second)
            flash = f"flash-{slot}-{item}"
            due = amount + amount * _FLASH_FEE // UNIT
            yield Act(flash, Action.BORROW_FLASH_LOAN, asset_id, borrower, second, amount, MARKETS, flash)
            yield Act(f"{flash}-back", Action.RETURN_FLASH_LOAN, asset_id, borrower, second, due, MARKETS, flash)


def _war_chest(seed: str, until: int) -> Iterator[Act]:
    for number, second in enumerate(range(LAUNCH + _WAR_CHEST_INTERVAL, until + 1, _WAR_CHEST_INTERVAL)):
        draws, act_id = Draws(f"{seed}|war chest|{number}"), f"war-chest-{number}"
        asset_id = draws.pick(LENT)
        amount = units(seed, asset_id, draws.sized(100_000, 4), second)
        yield Act(act_id, Action.CLAIM_WAR_CHEST, asset_id, RICH_ADDRESS, second, amount, _WAR_CHEST, act_id)


def _priced(seed: str, act: Act) -> Event:
    price = _price(seed, act.asset_id, act.second)
    decimals = _ASSETS[act.asset_id].decimals_denom
    return Event(
        id=act.id,
        action=act.action,
        asset_id=act.asset_id,
        address=act.address,
        at=instant(act.second),
        amount=act.amount,
        usd=None if act.amount is None else usd_value(act.amount, decimals, price),
        price=price,
        account_index=act.account_index,
        contract=act.contract,
        destination=act.destination,
        tx_hash=sha256(f"{seed}|{act.transaction}".encode()).hexdigest().upper(),
        leg=act.leg,
    )


# A user acts with the same asset several times in a trade.
@lru_cache(maxsize=32)
def _price(seed: str, asset_id: str, second: int) -> Decimal:
    """The oracle's price. The price of a receipt token is its origin's price times its redemption (rule 4.6)."""
    if (listing := LISTINGS.get(asset_id)) is not None:
        return prices.usd(seed, listing, second)
    origin = _ASSETS[asset_id].origin_asset
    if origin is None:
        raise ValueError(f"{asset_id} has no price")
    redeems = Decimal(accrued(seed, origin, second).lend_index).scaleb(-18)
    return rounded(EXACT.multiply(_price(seed, origin, second), redeems))
