"""The simulated users: their positions, events, unlock arrangements and swaps."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b, sha1

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics_service.market.addresses import parse_address
from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.health import Health, account_health
from analytics_service.market.positions import Account, Position
from analytics_service.market.ptoken import Arrangement, MemberClass, ScheduleKind
from analytics_service.market.receipts import with_receipt_prices
from analytics_service.market.shares import collateral_claims, debt_claims
from analytics_service.market.unlocks import unlock_amounts
from analytics_service.market.values import total, usd_value
from analytics_service.sources.simulated import (
    EMPTY_ADDRESS,
    RICH_ADDRESS,
    SWAP_CONTRACT,
    UNHEALTHY_ADDRESS,
)
from analytics_service.sources.simulated.draws import Draws
from analytics_service.sources.simulated.people import DESK_ADDRESS
from analytics_service.sources.simulated.source import SimulatedSource

LAUNCH = datetime(2025, 1, 1, tzinfo=UTC)
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
SOURCE = SimulatedSource("1")
ASSETS = {asset.id: asset for asset in SOURCE.assets(NOON)}
IDS = {asset.symbol: asset.id for asset in ASSETS.values()}

# Actions on one of the borrow accounts of an address.
OF_ACCOUNTS = {
    Action.BORROW,
    Action.RETURN,
    Action.DEPOSIT_COLLATERAL,
    Action.WITHDRAW_COLLATERAL,
    Action.LIQUIDATE,
    Action.BOND,
    Action.UNBOND,
}

few = settings(max_examples=3, deadline=None)
seeds = st.sampled_from(["1", "7", "winter"])
instants = st.datetimes(datetime(2025, 2, 1), datetime(2027, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - made aware


def positions(seed: str, at: datetime) -> dict[str, Position]:
    return {position.address: position for position in SimulatedSource(seed).positions(at)}


def health(seed: str, at: datetime, account: Account) -> Health:
    """Without any stake."""
    source = SimulatedSource(seed)
    markets = {market.asset_id: market for market in source.markets(at)}
    quoted = {price.asset_id: price.usd for price in source.prices(at)}
    prices = with_receipt_prices(quoted, ASSETS, markets.values())

    def usd(asset_id: str, amount: int) -> Decimal:
        return usd_value(amount, ASSETS[asset_id].decimals_denom, prices[asset_id])

    secured = []
    for one in collateral_claims(account.collaterals, markets):
        collateral = markets[one.asset_id].collateral
        assert collateral
        secured.append((usd(one.asset_id, one.principal), collateral.config.liquidation_ltv))
    owed = total(usd(one.asset_id, one.principal) for one in debt_claims(account.debts, markets))
    return account_health(secured, owed, Decimal(0), source.config(at))


def test_sample_addresses_can_be_quoted() -> None:
    assert RICH_ADDRESS == "ptcl1r49rp4udu6l9lxy9l7kzc6uyyhgawun7anz0vd"
    assert UNHEALTHY_ADDRESS == "ptcl19w6c5xfqq94gkg3r0xet5l2j9yae3rr2s0ggwy"
    assert EMPTY_ADDRESS == "ptcl1vwpt8nygzsftw7lu4mksycqpcqxeuvp9qjyl99"
    assert SWAP_CONTRACT == "ptcl1mfru9azs5nua2wxcd4sq64g5nt7nn4n89lw37vxx3t2mugw2mtvqdycuuq"


@few
@given(seeds, instants)
def test_addresses_are_the_same_for_every_seed_well_formed_and_of_both_forms(seed: str, at: datetime) -> None:
    everyone = list(SimulatedSource(seed).positions(at))
    addresses = [position.address for position in everyone]
    assert len(addresses) == len(set(addresses)) == 341
    assert set(addresses) == set(positions("1", NOON))
    assert all(parse_address(address) == address for address in addresses)
    assert {address[:2] for address in addresses} == {"0x", "pt"}
    assert EMPTY_ADDRESS not in addresses
    assert parse_address(EMPTY_ADDRESS) == EMPTY_ADDRESS


@few
@given(seeds, instants)
def test_the_rich_address_has_one_of_everything(seed: str, at: datetime) -> None:
    rich = positions(seed, at)[RICH_ADDRESS]
    assert [account.index for account in rich.accounts] == [0, 1, 2, 3]
    assert [len(account.debts) for account in rich.accounts] == [3, 3, 3, 0]
    assert all(held.shares > 0 for account in rich.accounts for held in (*account.collaterals, *account.debts))
    assert any(one.held for one in rich.lends)
    assert any(one.collateralized for one in rich.lends)
    assert {one.asset_id in ASSETS for one in rich.wallet} == {True, False}
    assert {stake.pool for stake in rich.stakes} == {0, 1, 2, 3}
    assert {stake.cascade for stake in rich.stakes} == {True, False}
    assert all(stake.cascade == (stake.transition_at is not None) for stake in rich.stakes)
    assert all(stake.transition_at > at for stake in rich.stakes if stake.transition_at)


@few
@given(seeds, instants)
def test_one_address_is_always_unhealthy_and_most_never_are(seed: str, at: datetime) -> None:
    """It owes 95 % of a collateral that is liquidated at 88 %; each peg may move by a third of a percent."""
    everyone = positions(seed, at)
    [account] = everyone[UNHEALTHY_ADDRESS].accounts
    assert Decimal("0.9") < health(seed, at, account).result < Decimal("0.94")
    others = [health(seed, at, position.accounts[0]) for position in list(everyone.values())[2:60] if position.accounts]
    assert len([one for one in others if one.result < 1]) < len(others) / 10


def test_users_are_of_many_kinds() -> None:
    everyone = list(positions("1", NOON).values())
    accounts = [account for position in everyone for account in position.accounts]
    assert sum(len(position.accounts) > 1 for position in everyone) > 50
    assert sum(not account.debts for account in accounts) > 20
    assert sum(bool(account.debts) for account in accounts) > 200
    assert sum(not position.accounts for position in everyone) > 20
    assert sum(not position.lends for position in everyone) > 50
    assert any(position.claimable_unbonding for position in everyone)
    assert any(position.unbondings for position in everyone)
    assert any(position.claimable_rewards for position in everyone)


@few
@given(seeds, instants)
def test_held_receipt_tokens_are_in_the_wallet(seed: str, at: datetime) -> None:
    for position in SimulatedSource(seed).positions(at):
        if position.address != DESK_ADDRESS:
            held = {ASSETS[one.asset_id].receipt_asset: one.held for one in position.lends if one.held}
            wallet = {one.asset_id: one.amount for one in position.wallet}
            assert held.items() <= wallet.items()


def test_deposits_are_posted_as_planned() -> None:
    """Of the rich address's three: half of the ether, all of the HEL, none of the USDT."""
    lends = {one.asset_id: one for one in positions("1", NOON)[RICH_ADDRESS].lends}
    ether, helion, tether = (lends[IDS[symbol]] for symbol in ("ETH", "HEL", "USDT"))
    assert 0 <= ether.held - ether.collateralized <= 1
    assert (helion.held, tether.collateralized) == (0, 0)


def test_unbonding_tokens_are_claimable_from_the_second_at_which_they_unlock() -> None:
    address, [unbonding] = next(
        (address, position.unbondings)
        for address, position in positions("1", NOON).items()
        if len(position.unbondings) == 1 and not position.claimable_unbonding
    )
    end = unbonding.unlock_at
    before, after = (positions("1", at)[address] for at in (end - timedelta(seconds=1), end))
    assert (before.unbondings, before.claimable_unbonding) == ((unbonding,), 0)
    assert (after.unbondings, after.claimable_unbonding) == ((), unbonding.amount)


def test_few_positions_change_in_an_hour_and_most_within_a_month() -> None:
    now, soon, later = (positions("1", at) for at in (NOON, NOON + DAY / 24, NOON + 30 * DAY))
    users = [address for address in now if address != DESK_ADDRESS]
    assert sum(now[address] != soon[address] for address in users) < 12
    assert sum(now[address] != later[address] for address in users) > 300


def events(seed: str, after: datetime, until: datetime) -> Sequence[Event]:
    return SimulatedSource(seed).events(after, until)


def test_the_first_event_is_a_loan_at_launch() -> None:
    assert events("1", datetime(1970, 1, 1, tzinfo=UTC), LAUNCH - timedelta(microseconds=1)) == []
    first = events("1", datetime(1970, 1, 1, tzinfo=UTC), LAUNCH)[0]
    assert (first.action, first.at, first.address) == (Action.BORROW, LAUNCH, RICH_ADDRESS)


def test_flash_loans_begin_after_the_first_hours_and_count_in_the_range_that_ends_with_them() -> None:
    flash = [one.at for one in events("1", LAUNCH, LAUNCH + 2 * DAY) if one.action is Action.BORROW_FLASH_LOAN]
    assert flash
    for seed in "123456":
        early = events(seed, LAUNCH - DAY, LAUNCH + DAY / 4 - timedelta(seconds=1))
        assert Action.BORROW_FLASH_LOAN not in {one.action for one in early}
    second = timedelta(seconds=1)
    assert Action.BORROW_FLASH_LOAN in {one.action for one in events("1", flash[0] - second, flash[0])}
    assert Action.BORROW_FLASH_LOAN not in {one.action for one in events("1", flash[0], flash[0] + second)}


@few
@given(seeds, instants, st.integers(0, 5 * 86_400))
def test_events_of_two_ranges_are_those_of_the_whole(seed: str, after: datetime, seconds: int) -> None:
    until = after + 5 * DAY
    between = after + timedelta(seconds=seconds)
    whole = events(seed, after, until)
    assert [*events(seed, after, between), *events(seed, between, until)] == whole
    assert all(after < event.at <= until for event in whole)
    assert [event.at for event in whole] == sorted(event.at for event in whole)
    assert len({event.id for event in whole}) == len(whole)


@few
@given(seeds, instants)
def test_events_are_worth_their_amount_at_the_price_of_their_time(seed: str, at: datetime) -> None:
    """So the cumulative value of loans never falls."""
    for event in events(seed, at, at + DAY)[:20]:
        quoted = {one.asset_id: one.usd for one in SimulatedSource(seed).prices(event.at)}
        markets = SimulatedSource(seed).markets(event.at)
        price = with_receipt_prices(quoted, ASSETS, markets)[event.asset_id]
        assert event.price is not None
        # The redemption ratio of a market is that of amounts that were rounded down.
        assert abs(event.price - price) <= price * Decimal("1e-6")
        if event.asset_id in quoted:
            assert event.price == price
        if event.amount is not None and event.usd is not None:
            exact = Fraction(event.amount) * Fraction(event.price) / 10 ** ASSETS[event.asset_id].decimals_denom
            assert event.amount > 0
            assert Fraction(event.usd) == Fraction(round(exact * 10**18), 10**18)
        assert (event.amount is None) == (event.usd is None)


@few
@given(seeds, instants)
def test_debts_change_only_by_events(seed: str, at: datetime) -> None:
    later = at + timedelta(hours=12)
    before, after = positions(seed, at), positions(seed, later)
    debts = {Action.BORROW, Action.RETURN, Action.LIQUIDATE}
    for kinds, part in ((debts, _debts), ({Action.LEND, Action.REDEEM}, _lent)):
        acted = {event.address for event in events(seed, at, later) if event.action in kinds}
        assert acted == {
            address for address in before if address != DESK_ADDRESS and part(before[address]) != part(after[address])
        }


def _debts(position: Position) -> list[object]:
    return [account.debts for account in position.accounts]


def _lent(position: Position) -> list[object]:
    return [(one.asset_id, one.held + one.collateralized) for one in position.lends]


def test_a_user_borrows_what_the_debt_grows_by() -> None:
    """Bitcoin debts of the rich address over its second trade, five days after launch, with five days of interest."""
    trade = LAUNCH + 5 * DAY
    shares = [
        {debt.asset_id: debt.shares for debt in positions("1", at)[RICH_ADDRESS].accounts[2].debts}[IDS["BTC"]]
        for at in (LAUNCH, trade)
    ]
    [event] = [
        one
        for one in events("1", trade - timedelta(seconds=1), trade)
        if one.asset_id == IDS["BTC"] and one.address == RICH_ADDRESS and one.action in (Action.BORROW, Action.RETURN)
    ]
    debt = {market.asset_id: market for market in SOURCE.markets(trade)}[IDS["BTC"]].debt
    assert debt
    expected = Fraction(abs(shares[1] - shares[0]) * debt.balance, debt.shares)
    assert abs(event.amount - expected) <= 1
    assert (event.action is Action.BORROW) == (shares[1] > shares[0])


def test_the_rich_address_does_everything_in_the_first_forty_days() -> None:
    """But the arrangement that is reclaimed is another's."""
    seen = Counter(event.action for event in events("1", EPOCH, LAUNCH + 40 * DAY) if event.address == RICH_ADDRESS)
    assert set(seen) == set(Action) - {Action.RECLAIM_TOKEN_UNLOCK}


def test_a_month_sees_events_of_all_users() -> None:
    month = events("1", NOON, NOON + 30 * DAY)
    seen = Counter(event.action for event in month)
    rare = {Action.CREATE_TOKEN_UNLOCK, Action.RECLAIM_TOKEN_UNLOCK}
    assert set(seen) == set(Action) - rare
    assert seen[Action.BORROW] > 300
    assert len({event.address for event in month}) > 300


def test_the_first_month_creates_and_reclaims_arrangements() -> None:
    seen = Counter(event.action for event in events("1", EPOCH, LAUNCH + 40 * DAY))
    assert (seen[Action.CREATE_TOKEN_UNLOCK], seen[Action.RECLAIM_TOKEN_UNLOCK]) == (12, 1)


def test_events_carry_what_their_action_has() -> None:
    for event in events("1", NOON, NOON + 30 * DAY):
        assert (event.account_index is not None) == (event.action in OF_ACCOUNTS)
        assert (event.destination is not None) == (event.action is Action.SEND)
        assert event.destination != event.address
        assert (event.leg is not None) == (event.action is Action.LIQUIDATE)
        assert (event.amount is None) == (event.action is Action.CASCADE)
        assert event.price is not None
        assert (parse_address(event.contract), len(event.tx_hash)) == (event.contract, 64)


def test_the_legs_of_a_liquidation_share_a_transaction_and_nothing_else_does_but_flash_loans() -> None:
    """Whoever liquidates takes at most 110 % of the debt, by the prices of the day's start."""
    by_hash: dict[str, list[Event]] = {}
    for event in events("1", NOON, NOON + 90 * DAY):
        by_hash.setdefault(event.tx_hash, []).append(event)
    pairs = [made for made in by_hash.values() if len(made) > 1]
    assert {len(made) for made in pairs} == {2}
    liquidations = [made for made in pairs if made[0].action is Action.LIQUIDATE]
    assert liquidations
    for made in liquidations:
        legs = {one.leg: one for one in made}
        debt, collateral = legs[Leg.DEBT], legs[Leg.COLLATERAL]
        assert (debt.at, debt.account_index) == (collateral.at, collateral.account_index)
        assert 0 < worth(collateral) < worth(debt) * Decimal("1.4")
    assert {one.action for made in pairs for one in made if made not in liquidations} == {
        Action.BORROW_FLASH_LOAN,
        Action.RETURN_FLASH_LOAN,
    }


def worth(event: Event) -> Decimal:
    assert event.usd is not None
    return event.usd


@few
@given(seeds, st.datetimes(datetime(2025, 1, 2), datetime(2025, 4, 1), timezones=st.just(UTC)))  # noqa: DTZ001 - made aware
def test_collaterals_and_stakes_are_what_events_add_up_to(seed: str, at: datetime) -> None:
    """From the launch on, which all events are read from; within three months everyone trades at least twice."""
    held: Counter[tuple[str, int, str]] = Counter()
    staked: Counter[str] = Counter()
    signs = {
        Action.DEPOSIT_COLLATERAL: 1,
        Action.WITHDRAW_COLLATERAL: -1,
        Action.LIQUIDATE: -1,
        Action.BOND: 1,
        Action.UNBOND: -1,
    }
    for event in events(seed, EPOCH, at):
        if event.action not in signs or event.leg is Leg.DEBT:
            continue
        assert event.amount is not None and event.account_index is not None
        change = signs[event.action] * event.amount
        if event.action in (Action.BOND, Action.UNBOND):
            staked[event.address] += change
        else:
            held[event.address, event.account_index, event.asset_id] += change
    everyone = positions(seed, at)
    assert {key: amount for key, amount in held.items() if amount} == {
        (one.address, account.index, collateral.asset_id): collateral.shares
        for one in everyone.values()
        for account in one.accounts
        for collateral in account.collaterals
        if collateral.shares
    }
    assert staked == {one.address: total for one in everyone.values() if (total := sum(s.amount for s in one.stakes))}


def test_what_an_arrangement_says_is_claimed_was_claimed_by_events() -> None:
    claimed: Counter[str] = Counter()
    for event in events("1", EPOCH, NOON + 40 * DAY):
        if event.action is Action.CLAIM_TOKEN_UNLOCK:
            claimed[event.address] += event.amount or 0
    agreed: Counter[str] = Counter()
    for one in SOURCE.arrangements(NOON + 40 * DAY):
        agreed[one.address] += one.claimed
    assert claimed == +agreed


def test_unbonded_tokens_are_claimed_at_the_next_trade() -> None:
    claims = [one for one in events("1", NOON, NOON + 10 * DAY) if one.action is Action.CLAIM_UNBONDED]
    assert claims
    for claim in claims:
        before = positions("1", claim.at - timedelta(seconds=1))[claim.address]
        assert (before.unbondings, before.claimable_unbonding) == ((), claim.amount)


def test_an_event_has_one_uuid_in_every_range_and_another_with_another_seed() -> None:
    whole = {one.id: one.uuid for one in events("1", NOON, NOON + DAY)}
    part = {one.id: one.uuid for one in events("1", NOON + DAY / 2, NOON + DAY)}
    other = {one.uuid for one in events("7", NOON, NOON + DAY)}
    assert part and part.items() <= whole.items()
    assert len(set(whole.values())) == len(whole)
    assert not other & set(whole.values())


def test_an_id_that_is_a_uuid_is_kept() -> None:
    """As that of an event that another deployment has told."""
    event = replace(events("1", NOON, NOON + DAY)[0], id="0a66ad88-cab3-5b27-816f-43b9bd2f33d9")
    assert event.uuid == event.id


def test_the_uuid_of_an_event_never_changes() -> None:
    """Computed by hand: SHA-1 of the namespace 0a66ad88-cab3-5b27-816f-43b9bd2f33d9 and "TX;1"."""
    event = Event("1", Action.SEND, "native;uorb", RICH_ADDRESS, NOON, 1, tx_hash="TX")
    namespace = bytes.fromhex("0a66ad88cab35b27816f43b9bd2f33d9")
    digest = bytearray(sha1(namespace + b"TX;1", usedforsecurity=False).digest()[:16])
    digest[6], digest[8] = digest[6] & 0x0F | 0x50, digest[8] & 0x3F | 0x80
    assert event.uuid.replace("-", "") == digest.hex()


def test_nobody_borrows_tidewater_once_it_is_halted() -> None:
    halt = datetime(2025, 2, 15, tzinfo=UTC)
    ordinary = [one for one in events("1", halt, halt + 20 * DAY) if one.action is Action.BORROW]
    assert ordinary
    assert IDS["TIDE"] not in {one.asset_id for one in ordinary}


@few
@given(seeds, instants)
def test_pools_hold_what_positions_stake(seed: str, at: datetime) -> None:
    bonded: Counter[int] = Counter()
    for position in SimulatedSource(seed).positions(at):
        for stake in position.stakes:
            bonded[stake.pool] += stake.amount
    ptoken = SimulatedSource(seed).ptoken(at)
    assert {pool.index: pool.total_bonded for pool in ptoken.pools} == dict(bonded)
    assert list(bonded) and sorted(bonded) == [0, 1, 2, 3]
    assert 0 < ptoken.total_claimed <= ptoken.total_issued <= ptoken.total_supply
    assert sum(bonded.values()) < ptoken.total_locked < ptoken.total_issued


def test_the_protocol_token_is_emitted_by_the_hour() -> None:
    """40 million a year, over half a year."""
    start, middle = (SOURCE.ptoken(LAUNCH + timedelta(hours=hours)) for hours in (0, 4_380))
    assert middle.total_issued - start.total_issued == 20_000_000 * 10**6
    assert middle == SOURCE.ptoken(middle.rewards_last_distributed)
    assert SOURCE.ptoken(LAUNCH + timedelta(minutes=59)).rewards_last_distributed == LAUNCH
    # 20 million on a weight of 12 million.
    assert middle.stake_acc == Decimal("1.666666666666666666")


def arrangements(at: datetime, seed: str = "1") -> dict[str, Arrangement]:
    return {f"{one.address}/{one.index}": one for one in SimulatedSource(seed).arrangements(at)}


def test_arrangements_are_of_every_class_and_in_every_state() -> None:
    made = arrangements(NOON).values()
    assert {one.member_class for one in made} == set(MemberClass)
    assert {one.kind for one in made} == set(ScheduleKind)
    assert all((one.ends_at is None) == (one.kind is ScheduleKind.LUMP_SUM) for one in made)
    amounts = [unlock_amounts(one, NOON) for one in made]
    assert len([one for one in amounts if one.reclaimed and one.claimable]) == 1
    assert len([one for one in amounts if one.expired]) == 1
    assert any(one.begins_at > NOON + 365 * DAY for one in made)
    assert [one.index for one in made if one.address == RICH_ADDRESS] == [0, 1]


@few
@given(seeds, instants)
def test_members_claim_at_most_what_has_unlocked_and_stake_and_hold_what_their_positions_have(
    seed: str, at: datetime
) -> None:
    everyone = positions(seed, at)
    for one in arrangements(at, seed).values():
        amounts = unlock_amounts(one, at)
        assert amounts.claimed <= amounts.unlocked
        assert (one.claimed > 0) == (one.last_claimed_at is not None)
        assert one.last_claimed_at is None or one.last_claimed_at <= at
        assert one.staked == sum(stake.amount for stake in everyone[one.address].stakes)
        assert one.held == sum(b.amount for b in everyone[one.address].wallet if b.asset_id == IDS["PTK"])


def test_claims_are_made_at_their_intervals_until_nothing_is_left() -> None:
    """The rich address claims of 20 million over four years every 30 days, and a lump sum ten days after it unlocks."""
    linear, lump = f"{RICH_ADDRESS}/0", f"{RICH_ADDRESS}/1"
    before, after = (arrangements(LAUNCH + 30 * DAY + timedelta(seconds=s)) for s in (-1, 0))
    assert (before[linear].claimed, before[linear].last_claimed_at) == (0, None)
    assert after[linear].claimed == 20_000_000 * 10**6 * 30 // 1460
    assert after[linear].last_claimed_at == LAUNCH + 30 * DAY
    assert (before[lump].claimed, after[lump].claimed) == (0, 500_000 * 10**6)
    end = arrangements(LAUNCH + 3_000 * DAY)
    assert end[linear].claimed == end[linear].amount
    assert end[lump].last_claimed_at == LAUNCH + 30 * DAY


def test_an_admin_reclaims_from_the_second_on() -> None:
    reclaim = datetime(2025, 2, 1, tzinfo=UTC)
    before, after = (arrangements(at) for at in (reclaim - timedelta(seconds=1), reclaim))
    assert not any(one.reclaimed_at for one in before.values())
    assert [one.reclaimed_at for one in after.values() if one.reclaimed_at] == [reclaim]


def test_there_are_two_swap_contracts_with_routes_between_plain_denoms() -> None:
    contracts = SOURCE.swaps(NOON)
    denoms = {asset.symbol_denom for asset in ASSETS.values()}
    assert len(contracts) == 2
    assert contracts[0].address == SWAP_CONTRACT
    for contract in contracts:
        assert parse_address(contract.address) == contract.address
        for source, targets in contract.routes.items():
            assert {source, *targets} <= denoms
            assert targets
            assert source not in targets
            assert len(set(targets)) == len(targets)
    assert contracts[1].routes["uorb"] == ("uusdt", "ahel")
    assert contracts[1].routes["uusdt"] == contracts[0].routes["uusdt"]


def test_draws_are_the_words_of_hashed_blocks() -> None:
    """Eight 64-bit words a block, the last first; each scaled to the limit."""
    draws = Draws("key")
    blocks = [blake2b(f"key|{block}".encode()).digest() for block in (0, 1)]
    words = [int.from_bytes(block[i : i + 8], "big") for block in blocks for i in range(56, -1, -8)]
    assert [draws.below(1_000) for _ in range(16)] == [word * 1_000 // 2**64 for word in words]


@given(st.text(max_size=5), st.integers(1, 10**6), st.integers(1, 40))
def test_draws_stay_within_their_limits(key: str, low: int, doublings: int) -> None:
    draws = Draws(key)
    assert low <= draws.sized(low, doublings) < low * 2**doublings
    assert low <= draws.between(low, low + 3) <= low + 3
    assert draws.pick("abc") in "abc"
    assert sorted(draws.sample("abc", 9)) == ["a", "b", "c"]
    assert len(set(draws.sample(range(9), 4))) == 4


@pytest.mark.parametrize(("percent", "always"), [(0, False), (100, True)])
def test_chances_of_0_and_100_percent_are_certain(percent: int, always: bool) -> None:
    assert {Draws(str(key)).chance(percent) for key in range(200)} == {always}
