"""The example queries for researchers, against sums over what the tests have stored. Their now is one of the tests."""

import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import sql_scripts, without_comments
from analytics_service.config.settings import Settings
from analytics_service.market.assets import Asset, AssetGroup, AssetKind
from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.markets import CollateralConfig, CollateralMarket, LendMarket, Market
from analytics_service.market.positions import Account, Holding, Position
from analytics_service.market.prices import Price
from analytics_service.store import ledger
from analytics_service.store.schema import view_names
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests import clickhouse
from tests.integration.databases import database
from tests.integration.handmade import CONFIG, HandMade, debt_market
from tests.integration.pages import commit

EXAMPLES = {script.stem: script.read_text("utf-8") for script in sql_scripts("examples")}
MOST_LINES = 15
# A Thursday. Clocks of New York changed on 2024-11-03 and on 2025-03-09.
NOW = datetime(2025, 4, 10, 12, 20, tzinfo=UTC)
DAY, HOUR, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(seconds=1)
MIDNIGHT = NOW.replace(hour=0, minute=0)
YEAR = 365 * 86_400
CENT = 0.01
# Two assets of one symbol, one without a price, one that had none but long ago, and the receipt token of the first.
A, B, C, OLD, RECEIPT = (f"token;{name}" for name in ("a", "b", "c", "old", "ra"))
SYMBOLS = {A: "AAA", B: "AAA", C: "CCC", OLD: "OLD", RECEIPT: "rAAA"}
DECIMALS = {A: 6, B: 18, C: 6, OLD: 6, RECEIPT: 6}
LTV = {A: Decimal("0.8"), B: Decimal("0.75"), C: Decimal("0.9"), RECEIPT: Decimal("0.7")}
# No prices, and no markets, of this day.
MISSING = MIDNIGHT - 9 * DAY

Key = TypeVar("Key")
Item = TypeVar("Item")
Rows = list[dict[str, Any]]
Ask = Callable[[str], Rows]


def asset(asset_id: str) -> Asset:
    name, symbol = asset_id.partition(";")[2], SYMBOLS[asset_id]
    plain = Asset(AssetGroup.TOKEN, name, symbol, symbol, symbol, DECIMALS[asset_id], 2)
    return replace(plain, kind=AssetKind.RECEIPT, origin_asset=A) if asset_id == RECEIPT else plain


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Items by a key, in their order."""
    groups: dict[Key, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def priced_at() -> list[datetime]:
    """The hours of ten days, with one left out; before these, twice a day for more than a year."""
    hours = [MIDNIGHT - 10 * DAY + HOUR * hour + timedelta(minutes=7) for hour in range(252) if hour != 200]
    days = [MIDNIGHT - DAY * day + timedelta(minutes=minutes) for day in range(430, 10, -1) for minutes in (270, 1080)]
    return [at for at in (*days, *hours) if not MISSING <= at < MISSING + DAY]


def usd(asset_id: str, at: datetime) -> Decimal:
    """Waves of different lengths, so that no return is that of another day, or of the other asset."""
    hours = (at - NOW) / HOUR
    wave = math.sin(hours / 29) + math.sin(hours / 5 + 1) if asset_id == A else math.cos(hours / 31) * 2
    return round(Decimal(wave * 0.2 + 2), 6) * (1 if asset_id == A else 100)


PRICES = [Price(asset_id, at, usd(asset_id, at)) for at in priced_at() for asset_id in (A, B)]
PRICES.append(Price(OLD, MIDNIGHT - 60 * DAY, Decimal(3)))
PRICES_AT = grouped(PRICES, lambda price: price.observed_at)
# The end of the last hour that is over by the prices.
OVER = max(PRICES_AT).replace(minute=0)
# Other prices at first, which a backfill corrects; but it does not have the last one.
ALONE = Price(A, priced_at()[-30] + timedelta(minutes=5), Decimal(2))
PRICES.append(ALONE)
WRONG = [*(Price(A, at, Decimal(999)) for at in priced_at()[-60:-30]), ALONE]

# Two snapshots in one hour, and one before them, of 45 days. The last one is before now.
DAYS = 45
MARKET_DAYS = [day for day in (MIDNIGHT - DAY * number for number in range(DAYS, 0, -1)) if day != MISSING]
MARKETS_AT = [
    *(day + timedelta(minutes=minutes) for day in MARKET_DAYS for minutes in (360, 1090, 1120)),
    NOW - timedelta(minutes=20),
]


def markets(at: datetime) -> list[Market]:
    """Markets of A, B and C at an instant: deposits grow without new receipt tokens, and debts swing around them."""
    hours = (at - MARKETS_AT[0]) // timedelta(minutes=10)
    made = []
    for number, asset_id in enumerate((A, B, C)):
        unit = 10 ** DECIMALS[asset_id]
        deposits = (1_000_000 + hours * (number + 1)) * unit
        debt = deposits * (400 + hours % 500) // 1000 // 2 * 2
        lend = LendMarket(Decimal(hours % 70 + number).scaleb(-3), deposits, 1_000_000 * unit)
        # Of each debt, a share is two denom units.
        owed = debt_market(Decimal(hours % 90 + 20 + number).scaleb(-3), debt, debt // 2)
        made.append(Market(asset_id, lend, _posted(asset_id, 5_000), owed))
    return [*made, Market(RECEIPT, None, _posted(RECEIPT, 2_000), None)]


def _posted(asset_id: str, units: int) -> CollateralMarket:
    rules = CollateralConfig(True, Decimal("0.5"), LTV[asset_id], None, Decimal(0), Decimal(0))
    return CollateralMarket(rules, units * 10 ** DECIMALS[asset_id], units * 10 ** DECIMALS[asset_id])


def borrower(number: int) -> str:
    return f"0x{number:040x}"


def holding(asset_id: str, units: str, of: int = 1) -> Holding:
    return Holding(asset_id, int(Decimal(units) * 10 ** DECIMALS[asset_id]) // of)


def account(collaterals: Mapping[str, str], debts: Mapping[str, str], index: int = 0) -> Account:
    posted = tuple(holding(asset_id, units) for asset_id, units in collaterals.items())
    return Account(index, posted, tuple(holding(asset_id, units, of=2) for asset_id, units in debts.items()))


# Twelve owe A, and one of these B and C, too, in a second account.
POSITIONS = [
    *(Position(borrower(n), (account({B: f"{1 + n % 3}"}, {A: f"{40 + n * n}"}),)) for n in range(1, 12)),
    Position(borrower(12), (account({RECEIPT: "150"}, {A: "98"}), account({B: "1", A: "110"}, {B: "1.5", C: "2"}, 3))),
    Position(borrower(13), (account({A: "5"}, {}),)),
]
REPAID = Position(borrower(14), (account({B: "9"}, {A: "5000"}),))


def events() -> Iterator[Event]:
    """Loans of many borrowers in several months, of whom some come back; deposits, redemptions and liquidations."""
    number = 0

    def event(action: Action, asset_id: str, address: int, at: datetime, **fields: Any) -> Event:
        nonlocal number
        number += 1
        amount = number * 10 ** DECIMALS[asset_id] // 7
        worth = Decimal(number) * 10 / 7
        return Event(f"{number}", action, asset_id, borrower(address), at, amount, round(worth, 18), **fields)

    for address in range(1, 15):
        for later in range(0, 200, 17 + address):
            yield event(Action.BORROW, (A, B, C)[later % 3], address, NOW - DAY * (200 - later) + HOUR)
    # Loans at the very second of a price, of what has had none for long, and of what has none.
    yield event(Action.BORROW, A, 1, PRICES[-40].observed_at)
    yield event(Action.BORROW, OLD, 1, NOW - DAY)
    yield event(Action.BORROW, C, 1, NOW - DAY)
    for days in range(2, 250, 3):
        yield event(Action.LEND, (A, B)[days % 2], days % 5, NOW - DAY * days)
        yield event(Action.REDEEM, (A, B)[days % 4 // 2], days % 5, NOW - DAY * days + HOUR)
    for days in (40, 29, 29, 3, 0):
        yield event(Action.LIQUIDATE, A, days, NOW - DAY * days - HOUR, leg=Leg.DEBT)
        yield event(Action.LIQUIDATE, B, days, NOW - DAY * days - HOUR, leg=Leg.COLLATERAL)
    yield event(Action.LIQUIDATE, B, 1, NOW - DAY * 3, leg=Leg.DEBT)


EVENTS = sorted(events(), key=lambda event: (event.at, event.id))
# Minutes after 12:00 of two days ago.
SCHEDULED = (0, 1, 6, 12, 13, 30)


@dataclass
class Diary(HandMade):
    """The protocol of this file at any instant."""

    def prices(self, at: datetime) -> Sequence[Price]:
        return PRICES_AT.get(at) or [Price(asset_id, at, usd(asset_id, at)) for asset_id in (A, B)]

    def markets(self, at: datetime) -> Sequence[Market]:
        return markets(at)


@pytest.fixture(scope="module")
def ask(server: Settings) -> Iterator[Ask]:
    """Answers an example as of the now of this file."""
    settings = replace(server, clickhouse_database="test_sql_examples")
    with database(settings, views=True) as store, clickhouse.client(settings) as own:
        _fill(store)

        def answer(name: str) -> Rows:
            second = int(NOW.timestamp())
            sql = re.sub(r"now\(('[^']+')\)", rf"toDateTime({second}, \1)", EXAMPLES[name])
            return list(own.query(sql.strip().removesuffix(";")).named_results())

        yield answer


def _fill(store: Store) -> None:
    source = Diary(assets_=[asset(asset_id) for asset_id in SYMBOLS], config_=replace(CONFIG, ptoken=A), events_=EVENTS)
    commit(store, {A: [(int(price.observed_at.timestamp()), price.usd) for price in WRONG]})
    *instants, last = sorted(PRICES_AT)
    backfill(JOBS["prices"], source, store, instants)
    take_snapshot(JOBS["prices"], source, store, last)
    for name in ("markets", "rates"):
        backfill(JOBS[name], source, store, MARKETS_AT)
    take_snapshot(JOBS["ptoken"], source, store, NOW)
    # A row of an event that a later run has replaced.
    wrong = EVENTS[-20]
    store.execute(
        "INSERT INTO event_version (address, at, uuid, action, asset_id, amount, usd, version) VALUES "
        f"('{wrong.address}', {int(wrong.at.timestamp())}, '{wrong.uuid}', 'borrow', '{A}', 1, 999, 0)"
    )
    take_snapshot(JOBS["loans"], source, store, NOW)
    take_snapshot(JOBS["positions"], replace(source, positions_=[REPAID, POSITIONS[0]]), store, NOW - DAY)
    take_snapshot(JOBS["positions"], replace(source, positions_=POSITIONS), store, NOW)
    noon = int((MIDNIGHT - 2 * DAY + 12 * HOUR).timestamp())
    for version, minutes in enumerate((*SCHEDULED, 30), 1):
        at = noon + 60 * minutes
        run = ledger.LedgerRow("prices", at, "job", at, at, 1, "test", version)
        store.insert(ledger.LEDGER, ledger.ledger_frame([run]))


def names_read(sql: str) -> set[str]:
    """The tables and views that a query reads, without its own common table expressions."""
    text = without_comments(sql)
    return set(re.findall(r"(?:FROM|JOIN)\s+(\w+)", text)) - set(re.findall(r"(?:WITH|,)\s+(\w+) AS\s*\(", text))


def test_there_are_twenty_each_on_a_screen() -> None:
    assert len(EXAMPLES) == 20
    for name, sql in EXAMPLES.items():
        lines = sql.splitlines()
        assert len(lines) <= MOST_LINES, name
        assert max(map(len, lines)) <= 120, name
        assert lines[0].startswith("-- ") and "?" in lines[0], name


def test_all_read_views_and_what_views_hide_is_in_none() -> None:
    """Except for the one about snapshots, which are what it asks about."""
    views = set(view_names())
    for name, sql in EXAMPLES.items():
        assert names_read(sql) <= views | ({"snapshot"} if name == "snapshot_gaps" else set()), name
        assert not re.search(r"\b(FINAL|version)\b", sql), name


def test_those_of_a_few_lines_run_as_they_are(ask: Ask) -> None:
    """All other tests compare rows."""
    for name in ("accounts_at_risk", "daily_tvl", "largest_borrowers", "price_as_of", "price_shock", "rate_spread"):
        assert ask(name), name


def keyed(rows: Rows, *keys: str) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Rows by some columns: the others. No two rows may have the same key, nor an asset another symbol."""
    for row in rows:
        for asset_id, symbol in (("asset_id", "symbol"), ("other_id", "other_symbol")):
            if asset_id in row:
                assert row[symbol] == SYMBOLS[row[asset_id]]
    rest = ("symbol", "other_symbol", *keys)
    found = {tuple(row[key] for key in keys): tuple(v for k, v in row.items() if k not in rest) for row in rows}
    assert len(found) == len(rows)
    return found


def near(*values: Any) -> tuple[Any, ...]:
    """Floats, which an example rounds to four digits or more, within that; exact numbers within what floats differ by;
    others as they are."""
    return tuple(
        pytest.approx(value, abs=6e-5)
        if isinstance(value, float)
        else pytest.approx(float(value), rel=1e-12)
        if isinstance(value, Decimal)
        else value
        for value in values
    )


def last_prices(
    bucket: Callable[[datetime], Key], since: datetime, until: datetime = NOW
) -> dict[tuple[str, Key], Any]:
    """The last price of each asset in each bucket of [since, until)."""
    ordered = sorted(PRICES, key=lambda price: price.observed_at)
    return {(p.asset_id, bucket(p.observed_at)): p.usd for p in ordered if since <= p.observed_at < until}


def price_by(asset_id: str, at: datetime) -> Price | None:
    """The last price of an asset by an instant."""
    return max(
        (price for price in PRICES if price.asset_id == asset_id and price.observed_at <= at),
        key=lambda price: price.observed_at,
        default=None,
    )


def market_of(asset_id: str, at: datetime) -> Market:
    return next(market for market in markets(at) if market.asset_id == asset_id)


def quote(asset_id: str, at: datetime) -> Fraction:
    """The price of an asset in a snapshot of markets, or 0; that of the receipt token is what a token redeems."""
    if asset_id == RECEIPT:
        lend = market_of(A, at).lend
        return Fraction(lend.principal, lend.receipt_supply) * Fraction(usd(A, at))
    return Fraction(usd(asset_id, at) if asset_id in (A, B) else 0)


def day_ends(since: datetime, until: datetime = NOW) -> dict[date, datetime]:
    """The last snapshot of markets of each UTC day."""
    return {at.date(): at for at in MARKETS_AT if since <= at < until}


def month_of(at: datetime) -> date:
    return at.date().replace(day=1)


def test_volatility_is_the_deviation_of_returns_between_hours_that_follow_each_other(ask: Ask) -> None:
    """Of whole hours: the last price is in one that is not over."""
    closes = last_prices(lambda at: at.replace(minute=0), NOW - 7 * DAY + timedelta(minutes=40), OVER)
    expected = {}
    for asset_id in (A, B):
        returns = [
            math.log(close / closes[asset_id, hour - HOUR])
            for (found, hour), close in closes.items()
            if found == asset_id and (found, hour - HOUR) in closes
        ]
        expected[(asset_id,)] = near(len(returns), statistics.stdev(returns))
    assert keyed(ask("hourly_volatility"), "asset_id") == expected


def test_a_drawdown_is_the_largest_fall_from_what_came_before(ask: Ask) -> None:
    """Of what has had one price for 60 days there is none."""
    expected = {}
    for asset_id in (A, B, OLD):
        peak, largest = Decimal(0), (-1.0, NOW)
        first = NOW - 90 * DAY + timedelta(minutes=40)
        for hour in (first + HOUR * number for number in range(90 * 24)):
            price = price_by(asset_id, hour + HOUR - SECOND) if hour < OVER else None
            if price:
                peak = max(peak, price.usd)
                largest = max(largest, (float(1 - price.usd / peak), hour), key=lambda fall: fall[0])
        expected[(asset_id,)] = near(*largest)
    assert expected[(OLD,)] == (0, MIDNIGHT - 60 * DAY)
    assert keyed(ask("drawdown"), "asset_id") == expected


def test_rates_by_utilization_are_medians_of_hours(ask: Ask) -> None:
    hours = {at.replace(minute=0): at for at in MARKETS_AT if at >= NOW - 30 * DAY}.values()
    rates = defaultdict(list)
    for asset_id in (A, B, C):
        for at in hours:
            market = market_of(asset_id, at)
            tenths = market.debt.balance * 10 // market.lend.principal
            rates[asset_id, tenths / 10].append((market.debt.apr, market.lend.apr))
    assert len(rates) > 10
    assert keyed(ask("rates_by_utilization"), "asset_id", "utilization_from") == {
        key: near(len(pairs), *(float(statistics.median(column)) for column in zip(*pairs, strict=True)))
        for key, pairs in rates.items()
    }


def test_liquidations_are_the_debt_that_they_repaid(ask: Ask) -> None:
    debts = [event for event in EVENTS if event.leg is Leg.DEBT and event.at >= MIDNIGHT - 30 * DAY]
    assert keyed(ask("daily_liquidations"), "day", "asset_id") == {
        key: near(len(found), sum(units(event) for event in found), sum(event.usd for event in found), 0)
        for key, found in grouped(debts, lambda event: (event.at.date(), event.asset_id)).items()
    }


def units(event: Event) -> Decimal:
    return Decimal(event.amount).scaleb(-DECIMALS[event.asset_id])


def test_events_are_at_the_last_price_by_their_second(ask: Ask) -> None:
    expected = {}
    for event in EVENTS:
        if event.at >= NOW - 7 * DAY:
            price = price_by(event.asset_id, event.at)
            if price and price.observed_at < NOW - 37 * DAY:
                price = None
            age = (event.at - price.observed_at) // timedelta(seconds=1) if price else None
            row = event.action, event.leg or "", event.asset_id, units(event), price and price.usd, age
            expected[event.at, event.uuid] = near(*row)
    assert keyed(ask("event_prices"), "time", "id") == expected
    assert {row[2] for row in expected.values()} == {A, B, C, OLD}
    assert {row[0] for row in expected.values()} == {"borrow", "lend", "redeem", "liquidate"}


def test_rates_of_a_month_weigh_as_long_as_they_held(ask: Ask) -> None:
    """The mean of its days, of which the first begins with the first rate, and one has the last rate before it."""
    by_month = defaultdict(list)
    for number in range(DAYS):
        day = MARKETS_AT[0].replace(hour=0) + DAY * number
        inside = [at for at in MARKETS_AT if day <= at < day + DAY]
        before = [at for at in MARKETS_AT if at < day][-1:]
        held = [(max(at, day), at) for at in (*before, *inside)]
        for asset_id in (A, B, C):
            area = sum(
                market_of(asset_id, at).lend.apr * int((later - since).total_seconds())
                for (since, at), (later, _) in pairwise([*held, (day + DAY, day)])
            )
            by_month[month_of(day), asset_id].append(area / int((day + DAY - held[0][0]).total_seconds()))
    assert keyed(ask("monthly_lend_rates"), "month", "asset_id") == {
        key: (pytest.approx(float(sum(means) / len(means)), abs=0.000001),) for key, means in by_month.items()
    }
    assert len(by_month) == 3 * 3


def health(one: Account, at: datetime) -> Fraction | None:
    """Collateral times liquidation LTV by debt, of which a share is two denom units."""

    def worth(held: Holding) -> Fraction:
        return Fraction(held.shares, 10 ** DECIMALS[held.asset_id]) * quote(held.asset_id, at)

    owed = sum(2 * worth(held) for held in one.debts)
    return sum(worth(held) * Fraction(LTV[held.asset_id]) for held in one.collaterals) / owed if owed else None


ACCOUNTS = {(position.address, one.index): one for position in POSITIONS for one in position.accounts}


def test_concentration_is_of_the_debt_of_each_asset(ask: Ask) -> None:
    owed = defaultdict(Counter)
    for (address, _), one in ACCOUNTS.items():
        for debt in one.debts:
            owed[debt.asset_id][address] += debt.shares * 2
    expected = {}
    for asset_id, debts in owed.items():
        total = sum(debts.values())
        shares = [amount / total for _, amount in debts.most_common()]
        debt = Decimal(total).scaleb(-DECIMALS[asset_id])
        expected[(asset_id,)] = near(len(debts), debt, sum(shares[:10]), sum(share**2 for share in shares))
    assert len(owed[A]) == 12
    assert keyed(ask("debt_concentration"), "asset_id") == expected


def test_returns_of_days_without_the_day_before_do_not_count(ask: Ask) -> None:
    closes = last_prices(lambda at: at.date(), MIDNIGHT - 90 * DAY, MIDNIGHT)
    days = sorted({day for _, day in closes})
    both = [(before, day) for before, day in pairwise(days) if day - before == DAY and (A, day) in closes]
    changes = [
        [math.log(closes[asset_id, day] / closes[asset_id, before]) for before, day in both] for asset_id in (A, B)
    ]
    assert len(both) == 90 - 3
    assert keyed(ask("return_correlation"), "asset_id", "other_id") == {
        (A, B): near(len(both), statistics.correlation(*changes))
    }


def test_days_at_risk_are_those_on_which_present_items_would_have_been(ask: Ask) -> None:
    ends = day_ends(MIDNIGHT - 90 * DAY, MIDNIGHT).values()
    expected = {}
    for key, one in ACCOUNTS.items():
        healths = [found for at in ends if (found := health(one, at)) is not None]
        if days := sum(found < Fraction("1.1") for found in healths):
            expected[key] = near(days, float(min(healths)))
    assert keyed(ask("days_at_risk"), "address", "account_index") == expected
    assert len({days for days, _ in expected.values()}) > 2


def test_cohorts_are_of_the_month_of_the_first_loan(ask: Ask) -> None:
    loans = [event for event in EVENTS if event.action is Action.BORROW]
    months = {
        address: sorted({month_of(event.at) for event in found})
        for address, found in grouped(loans, lambda event: event.address).items()
    }
    counts = Counter((of[0], _months(of[0], month)) for of in months.values() for month in of)
    assert keyed(ask("borrower_retention"), "cohort", "months_later") == {
        (cohort, later): near(count, count / counts[cohort, 0]) for (cohort, later), count in counts.items()
    }
    assert len(counts) > 6


def _months(first: date, later: date) -> int:
    return (later.year - first.year) * 12 + later.month - first.month


def test_flows_are_of_whole_weeks(ask: Ask) -> None:
    monday = MIDNIGHT - 3 * DAY
    flows = defaultdict(lambda: [Decimal(0), Decimal(0)])
    for event in EVENTS:
        if event.action in (Action.LEND, Action.REDEEM) and monday - 182 * DAY <= event.at < monday:
            week = (event.at - event.at.weekday() * DAY).date()
            flows[week, event.asset_id][event.action is Action.REDEEM] += event.usd
    assert len({week for week, _ in flows}) == 26
    assert keyed(ask("weekly_net_flows"), "week", "asset_id") == {
        key: near(lent, redeemed, lent - redeemed, 0) for key, (lent, redeemed) in flows.items()
    }


def test_interest_is_the_growth_of_redemption_and_debt_at_its_rate(ask: Ask) -> None:
    """The day after the one without data has that of two days."""
    expected: dict[Any, list[Fraction]] = defaultdict(lambda: [Fraction(0), Fraction(0)])
    for before, at in pairwise(day_ends(MARKETS_AT[0]).values()):
        for asset_id in (A, B):
            was, now = market_of(asset_id, before), market_of(asset_id, at)
            usd_was = Fraction(usd(asset_id, before)) / 10 ** DECIMALS[asset_id]
            growth = Fraction(now.lend.principal - was.lend.principal, was.lend.principal)
            seconds = int((at - before).total_seconds())
            earned, owed = expected[month_of(at), asset_id]
            earned += was.lend.principal * usd_was * growth
            owed += was.debt.balance * usd_was * Fraction(was.debt.apr) * seconds / YEAR
            expected[month_of(at), asset_id] = [earned, owed]
    found = keyed(ask("monthly_interest"), "month", "asset_id")
    assert {key for key in found if key[1] in (A, B)} == set(expected)
    # C has no price, and the receipt token has collateral only.
    assert {(key[1], *figures) for key, figures in found.items() if key[1] not in (A, B)} == {(C, None, None)}
    for key, figures in expected.items():
        assert found[key] == tuple(pytest.approx(float(figure), abs=CENT) for figure in figures)


def test_gaps_are_the_longest_between_snapshots_of_the_schedule(ask: Ask) -> None:
    """The ledger has one snapshot twice: there is no time between them."""
    noon = MIDNIGHT - 2 * DAY + 12 * HOUR
    runs = [*(noon + timedelta(minutes=minutes) for minutes in SCHEDULED), ALONE.observed_at, max(PRICES_AT)]
    gaps = [(before, at, int((at - before).total_seconds())) for before, at in pairwise(runs)]
    assert [tuple(row.values()) for row in ask("snapshot_gaps")] == sorted(gaps, key=lambda gap: (-gap[2], gap[1]))
    assert len(gaps) == 7


def test_local_days_follow_the_clocks_of_their_zone(ask: Ask) -> None:
    """A day without a price has that of the day before."""
    zone = ZoneInfo("America/New_York")
    today = NOW.astimezone(zone).date()
    days = [today - DAY * number for number in range(365, 0, -1)]
    ends = {day: datetime.combine(day + DAY, datetime.min.time(), zone).astimezone(UTC) for day in days}
    assert keyed(ask("local_days"), "day", "asset_id") == {
        (day, asset_id): near(price.usd)
        for day, end in ends.items()
        for asset_id in (A, B, OLD)
        if (price := price_by(asset_id, end - SECOND))
    }
