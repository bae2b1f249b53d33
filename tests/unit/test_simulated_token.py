"""The simulated protocol token, its unlock arrangements, the swaps, and what is drawn by hashing."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha1

from hypothesis import given, settings
from hypothesis import strategies as st

from analytics_service.market.assets import parse_address
from analytics_service.market.events import Action, Event
from analytics_service.market.positions import Position
from analytics_service.market.ptoken import Arrangement, MemberClass, ScheduleKind, unlock_amounts
from analytics_service.sources.simulated import RICH_ADDRESS, SWAP_CONTRACT
from analytics_service.sources.simulated.source import SimulatedSource

LAUNCH = datetime(2025, 1, 1, tzinfo=UTC)
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
BEFORE = LAUNCH - timedelta(seconds=1)
DAY = timedelta(days=1)
SOURCE = SimulatedSource("1")
ASSETS = {asset.id: asset for asset in SOURCE.assets(NOON)}
IDS = {asset.symbol: asset.id for asset in ASSETS.values()}

few = settings(max_examples=3, deadline=None)
seeds = st.sampled_from(["1", "7", "winter"])
instants = st.datetimes(datetime(2025, 2, 1), datetime(2025, 3, 20), timezones=st.just(UTC))  # noqa: DTZ001 - made aware


def positions(seed: str, at: datetime) -> dict[str, Position]:
    return {position.address: position for position in SimulatedSource(seed).positions(at)}


def test_unbonding_tokens_are_claimable_from_the_second_at_which_they_unlock() -> None:
    """14 days after they left the first pool. The next visit claims them."""
    unbond = next(
        event
        for event in SOURCE.events(BEFORE, NOON - 20 * DAY)
        if event.action is Action.UNBOND and 14 * DAY in _waits(event)
    )
    end = unbond.at + 14 * DAY
    before, after = (positions("1", at)[unbond.address] for at in (end - timedelta(seconds=1), end))
    assert (end, unbond.amount) in [(one.unlock_at, one.amount) for one in before.unbondings]
    assert end not in [one.unlock_at for one in after.unbondings]
    assert after.claimable_unbonding - before.claimable_unbonding == unbond.amount
    claims = [event for event in SOURCE.events(end, NOON) if event.action is Action.CLAIM_UNBONDED]
    for claim in claims:
        then = positions("1", claim.at - timedelta(seconds=1))[claim.address]
        assert then.claimable_unbonding == claim.amount


def _waits(event: Event) -> list[timedelta]:
    return [one.unlock_at - event.at for one in positions("1", event.at)[event.address].unbondings]


def test_stakes_share_all_that_is_emitted_by_weight() -> None:
    """40 million a year. What was claimed, is claimable, or is earned by the stakes since they last changed."""
    start, end = SOURCE.ptoken(NOON - 10 * DAY), SOURCE.ptoken(NOON)
    assert end.total_issued - start.total_issued == 40_000_000 * 10**6 * 10 // 365 + 1
    earned = []
    for at, ptoken in ((NOON - 10 * DAY, start), (NOON, end)):
        pending = sum(
            Decimal(stake.amount) * ptoken.pools[stake.pool].reward_weight * (ptoken.stake_acc - stake.last_stake_acc)
            for position in SOURCE.positions(at)
            for stake in position.stakes
        )
        settled = sum(one.unclaimed + one.claimable_rewards for one in SOURCE.positions(at))
        earned.append(pending + settled + ptoken.total_claimed)
    # Each settlement loses less than a unit.
    assert abs(earned[1] - earned[0] - (end.total_issued - start.total_issued)) < 1_000


@few
@given(seeds, instants)
def test_pools_hold_what_positions_stake(seed: str, at: datetime) -> None:
    bonded: Counter[int] = Counter()
    for position in SimulatedSource(seed).positions(at):
        for stake in position.stakes:
            bonded[stake.pool] += stake.amount
    ptoken = SimulatedSource(seed).ptoken(at)
    assert {pool.index: pool.total_bonded for pool in ptoken.pools} == dict(bonded)
    assert sorted(bonded) == [0, 1, 2, 3]
    assert 0 < ptoken.total_claimed <= ptoken.total_issued <= ptoken.total_supply
    assert sum(bonded.values()) < ptoken.total_locked < ptoken.total_issued


def test_what_was_claimed_was_claimed_by_events() -> None:
    claimed = {kind: Counter[str]() for kind in (Action.CLAIM_TOKEN_UNLOCK, Action.CLAIM_REWARDS)}
    for event in SOURCE.events(BEFORE, NOON):
        if event.action in claimed:
            claimed[event.action][event.address] += event.amount or 0
    agreed: Counter[str] = Counter()
    for one in SOURCE.arrangements(NOON):
        agreed[one.address] += one.claimed
    assert claimed[Action.CLAIM_TOKEN_UNLOCK] == +agreed
    assert SOURCE.ptoken(NOON).total_claimed == 400_000_000 * 10**6 + claimed[Action.CLAIM_REWARDS].total()


def test_an_id_that_is_a_uuid_is_kept() -> None:
    """As that of an event that another deployment has told."""
    event = replace(SOURCE.events(NOON, NOON + DAY)[0], id="0a66ad88-cab3-5b27-816f-43b9bd2f33d9")
    assert event.uuid == event.id


def test_the_uuid_of_an_event_never_changes() -> None:
    """Computed by hand: SHA-1 of the namespace 0a66ad88-cab3-5b27-816f-43b9bd2f33d9 and "TX;1"."""
    event = Event("1", Action.SEND, "native;uorb", RICH_ADDRESS, NOON, 1, tx_hash="TX")
    namespace = bytes.fromhex("0a66ad88cab35b27816f43b9bd2f33d9")
    digest = bytearray(sha1(namespace + b"TX;1", usedforsecurity=False).digest()[:16])
    digest[6], digest[8] = digest[6] & 0x0F | 0x50, digest[8] & 0x3F | 0x80
    assert event.uuid.replace("-", "") == digest.hex()


def arrangements(at: datetime, seed: str = "1") -> dict[str, Arrangement]:
    return {f"{one.address}/{one.index}": one for one in SimulatedSource(seed).arrangements(at)}


def test_arrangements_are_of_every_class_and_in_every_state() -> None:
    made = arrangements(NOON).values()
    assert {one.member_class for one in made} == set(MemberClass)
    assert {one.kind for one in made} == set(ScheduleKind)
    assert all((one.ends_at is None) == (one.kind is ScheduleKind.LUMP_SUM) for one in made)
    amounts = [unlock_amounts(one, NOON) for one in made]
    assert len([one for one in amounts if one.reclaimed]) == 1
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


def test_a_visit_claims_all_that_has_unlocked_since_the_last() -> None:
    """The rich address has 20 million over four years, and a lump sum of 500,000 after 20 days."""
    claims = [e for e in SOURCE.events(BEFORE, NOON) if e.action is Action.CLAIM_TOKEN_UNLOCK]
    own = [event for event in claims if event.address == RICH_ADDRESS]
    assert [event.amount for event in own].count(500_000 * 10**6) == 1
    linear = [event for event in own if event.amount != 500_000 * 10**6]
    seconds = int((linear[-1].at - LAUNCH).total_seconds())
    assert sum(event.amount or 0 for event in linear) == 20_000_000 * 10**6 * seconds // (1460 * 86_400)
    end = arrangements(NOON)[f"{RICH_ADDRESS}/0"]
    assert (end.claimed, end.last_claimed_at) == (sum(event.amount or 0 for event in linear), linear[-1].at)


def test_an_admin_reclaims_what_is_locked_when_a_member_has_left() -> None:
    """Of 3 million over two years. The member, who has three more, has claimed none of it."""
    (event,) = (one for one in SOURCE.events(BEFORE, NOON) if one.action is Action.RECLAIM_TOKEN_UNLOCK)
    before, after = (arrangements(at) for at in (event.at - timedelta(seconds=1), event.at))
    assert not any(one.reclaimed_at for one in before.values())
    (taken,) = (one for one in after.values() if one.reclaimed_at)
    assert (taken.reclaimed_at, taken.address) == (event.at, event.address)
    seconds = int((event.at - LAUNCH).total_seconds())
    assert event.amount == 3_000_000 * 10**6 - 3_000_000 * 10**6 * seconds // (730 * 86_400)
    assert unlock_amounts(taken, event.at).reclaimed == event.amount


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
    assert contracts[0].routes["uorb"] == tuple(one for one in contracts[0].routes if one != "uorb")
    assert contracts[1].routes["uorb"] == ("uusdt",)
    assert "uusdt" not in contracts[1].routes
