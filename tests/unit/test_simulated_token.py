"""The simulated protocol token, its unlock arrangements, the swaps, and what is drawn by hashing."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha1

from hypothesis import given, settings
from hypothesis import strategies as st

from analytics_service.market.events import Action, Event
from analytics_service.market.positions import Position
from analytics_service.market.ptoken import Arrangement, unlock_amounts
from analytics_service.sources.simulated import RICH_ADDRESS
from analytics_service.sources.simulated.source import SimulatedSource

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
SOURCE = SimulatedSource("1")
ASSETS = {asset.id: asset for asset in SOURCE.assets(NOON)}
IDS = {asset.symbol: asset.id for asset in ASSETS.values()}

few = settings(max_examples=3, deadline=None)
seeds = st.sampled_from(["1", "7", "winter"])
instants = st.datetimes(datetime(2025, 2, 1), datetime(2025, 3, 20), timezones=st.just(UTC))  # noqa: DTZ001 - made aware


def positions(seed: str, at: datetime) -> dict[str, Position]:
    return {position.address: position for position in SimulatedSource(seed).positions(at)}


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
