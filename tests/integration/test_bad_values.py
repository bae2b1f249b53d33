"""A value that the store cannot hold costs its asset or address, and nothing else of the snapshot."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.errors import SourceError
from analytics_service.market.assets import Asset, AssetGroup, is_listed
from analytics_service.market.events import Action, Event
from analytics_service.market.instants import unix_second
from analytics_service.market.markets import LendMarket, Market
from analytics_service.market.positions import Account, Balance, Holding, Position
from analytics_service.market.prices import Price
from analytics_service.market.sums import TOTAL
from analytics_service.store.datasets.assets import read_assets
from analytics_service.store.datasets.histories import BORROW_RATES, DEPOSITS, LEND_RATES, LOANS, PRICES, TVL, History
from analytics_service.store.datasets.markets import read_markets
from analytics_service.store.datasets.observations import read_latest
from analytics_service.store.datasets.positions import read_position
from jobs.registry import JOBS
from jobs.rejections import LastLogged, Rejections
from jobs.runner import backfill, take_snapshot
from tests.integration.handmade import NOON, HandMade, debt_market

MINUTE = timedelta(minutes=1)
GOOD, BAD = "native;good", "native;bad"
ASSETS = tuple(Asset(AssetGroup.NATIVE, name, name, name.upper(), f"u{name}", 6, 2) for name in ("good", "bad"))
LEND = LendMarket(Decimal("0.04"), 5_000_000, 5_000_000)
SOUND = {GOOD: Market(GOOD, LEND, None, debt_market()), BAD: Market(BAD, LEND, None, debt_market())}
ALICE, BOB, CAROL, DAVE = (f"0x{letter * 40}" for letter in "abcd")
NAN = Decimal("NaN")


@dataclass
class Protocol(HandMade):
    """Two assets of 1 USD, of each of which five are lent."""

    assets_: Sequence[Asset] = ASSETS
    markets_: Sequence[Market] = tuple(SOUND.values())
    usd: tuple[Decimal, Decimal] = (Decimal(1), Decimal(1))
    ids: tuple[str, str] = (GOOD, BAD)
    observed_at: datetime | None = None

    def prices(self, at: datetime) -> Sequence[Price]:
        (good, bad), (one, other) = self.ids, self.usd
        return [Price(good, at, one), Price(bad, self.observed_at or at, other)]


def latest(store: Store, history: History, at: datetime, *ids: str) -> dict[str, tuple[Decimal, datetime]]:
    return read_latest(store, history, ids or (GOOD, BAD), unix_second(at))


BAD_PRICES: Sequence[tuple[dict[str, object], str]] = (
    ({"usd": (Decimal(1), NAN)}, "usd of native;bad: NaN is not a price"),
    ({"usd": (Decimal(1), 1.5)}, "usd of native;bad is the float 1.5."),
    ({"ids": (GOOD, "bad")}, "asset_id of bad: 'bad' is not the id of an asset"),
    ({"observed_at": datetime.fromtimestamp(0, NOON.tzinfo)}, "observed_at of native;bad is 1970-01-01T00:00:00Z, "),
    ({"observed_at": NOON + timedelta(days=2)}, "observed_at of native;bad is 2025-03-03T12:00:00Z, which"),
)


def test_a_bad_price_is_left_out_with_a_warning(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    take_snapshot(JOBS["prices"], Protocol(), store, NOON)
    for number, (bad, fault) in enumerate(BAD_PRICES, 1):
        at = NOON + number * MINUTE
        caplog.clear()
        take_snapshot(JOBS["prices"], replace(Protocol(), **bad), store, at)  # type: ignore[arg-type]
        assert {key: seen for key, (_, seen) in latest(store, PRICES, at).items()} == {GOOD: at, BAD: NOON}
        (message,) = caplog.messages
        assert message.startswith(f"prices: {fault}")
        assert message.endswith("It is rejected; the stored value is kept.")


def test_a_rate_below_zero_is_stored_and_one_below_all_is_left_out(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """A market that loses all that is in it within a year has a rate of -1."""
    lend = replace(LEND, apr=Decimal("-1.1"))
    markets = (Market(GOOD, lend, None, debt_market(Decimal(-1))), Market(BAD, replace(LEND, apr=NAN), None, None))
    take_snapshot(JOBS["rates"], Protocol(markets_=markets), store, NOON)
    assert latest(store, LEND_RATES, NOON) == {}
    assert latest(store, BORROW_RATES, NOON) == {GOOD: (Decimal(-1), NOON)}
    assert caplog.messages == [
        "lend rates: apr of native;good: -1.1 is not an APR: it must be a fraction from -1 to 100. It is rejected; "
        "the stored value is kept. 2 records were rejected for this cause."
    ]


def test_a_bad_side_of_a_market_stays_what_it_was_and_the_other_side_counts(store: Store) -> None:
    """Had it gone, the total would have fallen, and accounts that post it would be liquidatable."""
    take_snapshot(JOBS["markets"], Protocol(), store, NOON - MINUTE)
    bad = Market(BAD, replace(LEND, principal=-1), None, debt_market(Decimal("0.2")))
    good = Market(GOOD, replace(LEND, principal=7_000_000), None, debt_market())
    take_snapshot(JOBS["markets"], Protocol(markets_=(good, bad)), store, NOON)
    stored = read_markets(store, unix_second(NOON))
    assert stored[BAD].lend == LEND
    assert stored[BAD].debt and stored[BAD].debt.apr == Decimal("0.2")
    assert latest(store, DEPOSITS, NOON) == {GOOD: (Decimal(7), NOON), BAD: (Decimal(5), NOON)}
    assert latest(store, TVL, NOON, TOTAL) == {TOTAL: (Decimal(12), NOON)}


def test_in_a_backfill_it_stays_what_it_was_in_the_snapshot_before(store: Store) -> None:
    """Of the same batch, if that is newer than the last complete one."""

    class Growing(Protocol):
        def markets(self, at: datetime) -> Sequence[Market]:
            minute = (at - NOON) // MINUTE
            lend = replace(LEND, principal=-1 if minute == 3 else minute)
            return [SOUND[GOOD], Market(BAD, lend, None, None)]

    take_snapshot(JOBS["markets"], Growing(), store, NOON + MINUTE)
    backfill(JOBS["markets"], Growing(), store, [NOON + minute * MINUTE for minute in (2, 3)])
    lend = read_markets(store, unix_second(NOON + 3 * MINUTE))[BAD].lend
    assert lend and lend.principal == 2


def test_a_market_that_never_was_sound_is_left_out(store: Store) -> None:
    nameless = Market("bad", LEND, None, None)
    bad = Market(BAD, replace(LEND, receipt_supply=2**256), None, None)
    take_snapshot(JOBS["markets"], Protocol(markets_=(SOUND[GOOD], bad, nameless)), store, NOON)
    assert list(read_markets(store, unix_second(NOON))) == [GOOD]
    with pytest.raises(SourceError, match="has no markets"):
        take_snapshot(JOBS["markets"], Protocol(markets_=(nameless, bad)), store, NOON + MINUTE)


def test_decimals_never_change(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """The source says 12 in place of 6, and a millionfold amount: the market of before stays, and so does the asset."""
    for job in ("prices", "markets"):
        take_snapshot(JOBS[job], Protocol(), store, NOON - MINUTE)
    renamed, doubled = replace(ASSETS[0], name="Better"), replace(ASSETS[1], decimals_denom=12)
    bad = Market(BAD, replace(LEND, principal=5 * 10**12), None, None)
    source = Protocol(assets_=(renamed, doubled), markets_=(SOUND[GOOD], bad), usd=(Decimal(2), Decimal(2)))
    for job in ("prices", "markets"):
        take_snapshot(JOBS[job], source, store, NOON)
    assert read_assets(store) == {GOOD: renamed, BAD: ASSETS[1]}
    assert read_markets(store, unix_second(NOON))[BAD] == SOUND[BAD]
    assert latest(store, DEPOSITS, NOON) == {GOOD: (Decimal(10), NOON), BAD: (Decimal(10), NOON)}
    assert set(caplog.messages) == {
        "assets: decimals_denom of native;bad is 12, and was 6; decimals never change. If 12 is right, "
        "correct the asset with `analytics-service import assets FILE`, then run `jobs recompute` and `jobs backfill "
        "all --again`. Its stored markets are kept, too. It is rejected; the stored value is kept."
    }


def test_an_asset_keeps_the_definition_that_it_had(store: Store) -> None:
    take_snapshot(JOBS["prices"], Protocol(), store, NOON - MINUTE)
    take_snapshot(JOBS["prices"], Protocol(assets_=(ASSETS[0], replace(ASSETS[1], decimals_display=-1))), store, NOON)
    assert read_assets(store)[BAD] == ASSETS[1]
    assert is_listed(read_assets(store)[BAD])


def test_an_asset_that_only_an_import_named_gets_its_decimals(store: Store) -> None:
    imported = replace(ASSETS[1], symbol_denom="", decimals_denom=0)
    backfill(JOBS["prices"], Protocol(assets_=(ASSETS[0], imported)), store, [NOON - MINUTE])
    take_snapshot(JOBS["prices"], Protocol(), store, NOON)
    assert read_assets(store)[BAD] == ASSETS[1]


def test_an_address_with_a_bad_item_keeps_its_position(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    account = Account(0, (Holding(GOOD, 5),), (Holding(BAD, 1),))
    before = [Position(ALICE, (account,), wallet=(Balance(GOOD, 3),)), Position(BOB, wallet=(Balance(GOOD, 3),))]
    after = [Position(ALICE.upper().replace("X", "x"), wallet=(Balance(GOOD, -4),)), Position(BOB)]
    after += [Position(CAROL, wallet=(Balance("none", 1),)), Position(DAVE, wallet=(Balance(BAD, 1),))]
    take_snapshot(JOBS["positions"], Protocol(positions_=before), store, NOON - MINUTE)
    take_snapshot(JOBS["positions"], Protocol(positions_=after), store, NOON)
    positions = {address: read_position(store, address, unix_second(NOON)) for address in (ALICE, BOB, DAVE)}
    assert positions == {ALICE: before[0], BOB: Position(BOB), DAVE: after[3]}
    assert [message.partition(" is not ")[0] for message in caplog.messages] == [
        f"positions: wallet.0.amount of {after[0].address}: -4",
        f"positions: wallet.0.asset_id of {CAROL}: 'none'",
    ]


def test_a_bad_event_is_left_out(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    good = Event("1", Action.BORROW, GOOD, ALICE, NOON - MINUTE, 5, Decimal(7), Decimal(1))
    bad = replace(good, id="2", amount=-5), replace(good, id=3), replace(good, id="4", amount=None)  # type: ignore[arg-type]
    take_snapshot(JOBS["loans"], Protocol(events_=(good, *bad)), store, NOON)
    assert latest(store, LOANS, NOON, TOTAL) == {TOTAL: (Decimal(7), NOON - MINUTE)}
    assert [message.partition(" is ")[0] for message in caplog.messages] == [
        "events: amount of 2: -5",
        "events: id of 3",
        "events: amount of 4",
    ]


def test_a_cause_is_logged_once_an_hour_with_a_count(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """At noon, 20 minutes later and an hour later. What one job has logged, another one does not log."""
    told: LastLogged = {}
    now = 0.0
    rejections, other = (Rejections(told, lambda: now) for _ in range(2))
    for now, bad in ((0.0, -1), (1_200.0, -2), (3_600.0, -3)):
        source = Protocol(usd=(Decimal(1), Decimal(bad)))
        take_snapshot(JOBS["prices"], source, store, NOON + timedelta(seconds=now), rejections=rejections)
        take_snapshot(JOBS["markets"], source, store, NOON + timedelta(seconds=now), rejections=other)
    rule = "is not a price: it must be finite, not negative and below 10^20. It is rejected; the stored value is kept."
    # The first is logged when prices are, that of an hour later with the three of both jobs in between.
    assert caplog.messages == [
        f"prices: usd of native;bad: -1 {rule}",
        f"prices: usd of native;bad: -3 {rule} 4 records were rejected for this cause.",
    ]
