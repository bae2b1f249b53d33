"""The simulated ledger: positions and markets follow from the events."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from analytics_service.market.assets import parse_address
from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.positions import Position
from analytics_service.market.receipts import claims_of
from analytics_service.sources.simulated import EMPTY_ADDRESS, RICH_ADDRESS, SWAP_CONTRACT
from analytics_service.sources.simulated import ledger as ledgers
from analytics_service.sources.simulated.source import SimulatedSource

LAUNCH = datetime(2025, 1, 1, tzinfo=UTC)
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
BEFORE = LAUNCH - timedelta(seconds=1)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
SOURCE = SimulatedSource("1")
ASSETS = {asset.id: asset for asset in SOURCE.assets(NOON)}

few = settings(max_examples=3, deadline=None)
seeds = st.sampled_from(["1", "7", "winter"])
instants = st.datetimes(datetime(2025, 1, 3), datetime(2025, 3, 20), timezones=st.just(UTC))  # noqa: DTZ001 - made aware


@cache
def events(seed: str, start: datetime = BEFORE, end: datetime = NOON) -> Sequence[Event]:
    return SimulatedSource(seed).events(start, end)


def positions(seed: str, at: datetime) -> dict[str, Position]:
    return {position.address: position for position in SimulatedSource(seed).positions(at)}


SIGNS = {Action.DEPOSIT_COLLATERAL: 1, Action.WITHDRAW_COLLATERAL: -1, Action.BOND: 1, Action.UNBOND: -1}


@few
@given(seeds, instants.filter(lambda at: at < NOON))
def test_collaterals_and_stakes_are_what_events_add_up_to(seed: str, at: datetime) -> None:
    sums: Counter[tuple[str, int | None, str]] = Counter()
    for event in events(seed):
        if event.at <= at and (event.action in SIGNS or event.leg is Leg.COLLATERAL):
            kind = "stake" if event.action in (Action.BOND, Action.UNBOND) else event.asset_id
            sums[event.address, event.account_index, kind] += SIGNS.get(event.action, -1) * (event.amount or 0)
    held: Counter[tuple[str, int | None, str]] = Counter()
    for address, position in positions(seed, at).items():
        for account in position.accounts:
            held.update({(address, account.index, one.asset_id): one.shares for one in account.collaterals})
        for stake in position.stakes:
            held[address, stake.account_index, "stake"] += stake.amount
    assert {key: amount for key, amount in sums.items() if amount} == held


@few
@given(seeds, instants)
def test_markets_are_the_sums_of_all_positions_to_the_unit(seed: str, at: datetime) -> None:
    """Of shares. The debts behind them are rounded down, each by less than a unit."""
    posted: Counter[str] = Counter()
    shares: Counter[str] = Counter()
    receipts: Counter[str] = Counter()
    owed: Counter[str] = Counter()
    by_id = {market.asset_id: market for market in SimulatedSource(seed).markets(at)}
    everyone = positions(seed, at).values()
    for position in everyone:
        for account in position.accounts:
            posted.update({held.asset_id: held.shares for held in account.collaterals})
            shares.update({held.asset_id: held.shares for held in account.debts})
            owed.update({claim.asset_id: claim.principal for claim in claims_of(account.debts, by_id, "debt")})
        receipts.update({lent.asset_id: lent.held + lent.collateralized for lent in position.lends})
    for asset_id, market in by_id.items():
        assert market.collateral is None or market.collateral.shares == posted.pop(asset_id, 0)
        assert market.lend is None or market.lend.receipt_supply == receipts.pop(asset_id, 0)
        if market.debt:
            assert market.debt.shares == shares.pop(asset_id, 0)
            assert market.debt.balance - 4 * len(everyone) < owed[asset_id] <= market.debt.balance
    assert not posted + shares + receipts


# The same in whatever order.


@few
@given(seeds, instants, instants)
def test_a_state_is_the_same_whatever_was_asked_before(seed: str, at: datetime, other: datetime) -> None:
    def everything(then: datetime) -> tuple[object, ...]:
        source = SimulatedSource(seed)
        answers = (source.markets(then), source.ptoken(then), source.arrangements(then), source.positions(then))
        return (*answers, source.events(then - DAY / 4, then))

    first = everything(at)
    ledgers.world_ledger.cache_clear()
    everything(other)
    assert everything(at) == first


@few
@given(seeds, instants, st.integers(0, 5 * 86_400))
def test_events_of_two_ranges_are_those_of_the_whole(seed: str, start: datetime, seconds: int) -> None:
    end, between = start + 5 * DAY, start + seconds * SECOND
    whole = events(seed, start, end)
    assert [*events(seed, start, between), *events(seed, between, end)] == whole
    assert [event.at for event in whole] == sorted(event.at for event in whole)
    assert all(start <= event.at < end for event in whole)
    assert len({event.uuid for event in whole}) == len(whole)


# What there is to see.


def test_sample_addresses_can_be_quoted() -> None:
    assert RICH_ADDRESS == "ptcl1r49rp4udu6l9lxy9l7kzc6uyyhgawun7anz0vd"
    assert EMPTY_ADDRESS == "ptcl1vwpt8nygzsftw7lu4mksycqpcqxeuvp9qjyl99"
    assert SWAP_CONTRACT == "ptcl1mfru9azs5nua2wxcd4sq64g5nt7nn4n89lw37vxx3t2mugw2mtvqdycuuq"


@few
@given(seeds)
def test_addresses_are_the_same_for_every_seed_well_formed_and_of_both_forms(seed: str) -> None:
    addresses = list(positions(seed, NOON))
    assert len(addresses) == 100
    assert set(addresses) == set(positions("1", NOON))
    assert all(parse_address(address) == address for address in addresses)
    assert {address[:2] for address in addresses} == {"0x", "pt"}
    assert EMPTY_ADDRESS not in addresses


@few
@given(seeds)
def test_the_rich_address_has_one_of_everything(seed: str) -> None:
    rich = positions(seed, NOON)[RICH_ADDRESS]
    assert [account.index for account in rich.accounts] == [0, 1, 2, 3]
    assert [bool(account.debts) for account in rich.accounts] == [True, True, True, False]
    assert any(one.held for one in rich.lends)
    assert any(one.collateralized for one in rich.lends)
    assert {one.asset_id in ASSETS for one in rich.wallet} == {True, False}
    assert {stake.pool for stake in rich.stakes} == {0, 1, 2, 3}
    assert {stake.cascade for stake in rich.stakes} == {True, False}
    assert all(stake.transition_at > NOON for stake in rich.stakes if stake.transition_at)
    seen = {event.action for event in events(seed, end=NOON + 120 * DAY) if event.address == RICH_ADDRESS}
    assert set(Action) - seen <= {Action.RECLAIM_TOKEN_UNLOCK, Action.LIQUIDATE, Action.BORROW_FLASH_LOAN} | {
        Action.RETURN_FLASH_LOAN
    }


def test_a_month_sees_events_of_all_kinds() -> None:
    seen = Counter(event.action for event in events("1"))
    assert set(seen) == set(Action)
    assert seen[Action.BORROW] > 100
    assert (seen[Action.CREATE_TOKEN_UNLOCK], seen[Action.RECLAIM_TOKEN_UNLOCK]) == (6, 1)
