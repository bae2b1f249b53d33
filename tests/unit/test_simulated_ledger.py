"""The simulated ledger: what positions, markets and liquidations are follows from the events and the rules."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics_service.market.account_health import Health, account_health
from analytics_service.market.assets import parse_address
from analytics_service.market.decimals import exact_value, sum_decimals
from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.instants import unix_second
from analytics_service.market.markets import Market
from analytics_service.market.positions import Account, Position
from analytics_service.market.receipts import claims_of, with_receipt_prices
from analytics_service.sources.simulated import EMPTY_ADDRESS, RICH_ADDRESS, SWAP_CONTRACT
from analytics_service.sources.simulated import ledger as ledgers
from analytics_service.sources.simulated.source import SimulatedSource

LAUNCH = datetime(2025, 1, 1, tzinfo=UTC)
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
BEFORE = LAUNCH - timedelta(seconds=1)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
SOURCE = SimulatedSource("1")
ASSETS = {asset.id: asset for asset in SOURCE.assets(NOON)}
IDS = {asset.symbol: asset.id for asset in ASSETS.values()}
RECEIPTS = {asset.receipt_asset: asset.id for asset in ASSETS.values() if asset.receipt_asset}

few = settings(max_examples=3, deadline=None)
seeds = st.sampled_from(["1", "7", "winter"])
instants = st.datetimes(datetime(2025, 1, 3), datetime(2025, 3, 20), timezones=st.just(UTC))  # noqa: DTZ001 - made aware


@cache
def events(seed: str, start: datetime = BEFORE, end: datetime = NOON) -> Sequence[Event]:
    return SimulatedSource(seed).events(start, end)


def positions(seed: str, at: datetime) -> dict[str, Position]:
    return {position.address: position for position in SimulatedSource(seed).positions(at)}


def markets(seed: str, at: datetime) -> dict[str, Market]:
    """Markets by symbol."""
    return {ASSETS[market.asset_id].symbol: market for market in SimulatedSource(seed).markets(at)}


def prices(seed: str, at: datetime) -> Mapping[str, Decimal]:
    quoted = {price.asset_id: price.usd for price in SimulatedSource(seed).prices(at)}
    return with_receipt_prices(quoted, ASSETS, SimulatedSource(seed).markets(at))


# The fold of the events by the protocol's rules, in fractions: nothing here is shared with the source.

YEAR = 365 * 86_400
# Base, slope up to the kink, slope from there to 1, kink, and the part of the interest that lenders do not get.
CURVES = {
    "HEL": ("0.01", "0.07", "1.2", "0.75", "0.2"),
    "ORB": ("0.015", "0.09", "1.5", "0.75", "0.2"),
    "ETH": ("0", "0.035", "0.8", "0.85", "0.15"),
    "BTC": ("0", "0.03", "0.8", "0.85", "0.15"),
    "TIDE": ("0.02", "0.12", "2", "0.7", "0.25"),
    "QRY": ("0.03", "0.15", "2", "0.7", "0.25"),
    "USDT": ("0", "0.055", "0.6", "0.9", "0.1"),
    "USDC": ("0", "0.05", "0.6", "0.9", "0.1"),
    "HUSD": ("0.005", "0.06", "0.75", "0.85", "0.15"),
}


def rates(symbol: str, balance: Fraction, principal: Fraction) -> tuple[Fraction, Fraction]:
    """What borrowers pay and lenders get, by utilization."""
    base, slope, steep, kink, fee = map(Fraction, CURVES[symbol])
    used = balance / principal if principal else Fraction(0)
    borrow = base + slope * min(used, kink) / kink + steep * max(used - kink, Fraction(0)) / (1 - kink)
    return borrow, borrow * used * (1 - fee)


class Pool:
    """What is owed to each lender and by each account, as fractions that grow by interest."""

    def __init__(self, symbol: str) -> None:
        self.symbol, self.at, self.rates = symbol, LAUNCH, (Fraction(0), Fraction(0))
        self.lent: dict[str, Fraction] = defaultdict(Fraction)
        self.owed: dict[tuple[str, int], Fraction] = defaultdict(Fraction)

    def grow(self, at: datetime) -> None:
        """Simple interest at the rates in force: they change when an event does."""
        seconds = unix_second(at) - unix_second(self.at)
        borrow, lend = (1 + rate * seconds / YEAR for rate in self.rates)
        # Short fractions: amounts are exact to far below a unit.
        self.owed = defaultdict(Fraction, {key: _short(owed * borrow) for key, owed in self.owed.items()})
        self.lent = defaultdict(Fraction, {key: _short(lent * lend) for key, lent in self.lent.items()})
        self.at = at

    def change(self, event: Event) -> None:
        self.grow(event.at)
        amount, key = Fraction(event.amount or 0), (event.address, event.account_index or 0)
        match event.action:
            case Action.LEND | Action.REDEEM:
                self.lent[event.address] += amount if event.action is Action.LEND else -amount
            case Action.BORROW:
                self.owed[key] += amount
            case Action.RETURN | Action.LIQUIDATE:
                self.owed[key] -= amount
            case _:
                pass
        self.rates = rates(self.symbol, sum(self.owed.values(), Fraction(0)), sum(self.lent.values(), Fraction(0)))


def _short(value: Fraction) -> Fraction:
    return Fraction(round(value * 2**60), 2**60)


# Flash loans and claims of fees change neither side, but interest is added, too.
OF_POOLS = {
    *(Action.LEND, Action.REDEEM, Action.BORROW, Action.RETURN),
    *(Action.BORROW_FLASH_LOAN, Action.RETURN_FLASH_LOAN, Action.CLAIM_WAR_CHEST),
}


def folded(seed: str, until: datetime) -> dict[str, Pool]:
    pools = {symbol: Pool(symbol) for symbol in CURVES}
    for event in events(seed):
        if event.at <= until and (event.action in OF_POOLS or event.leg is Leg.DEBT):
            pools[ASSETS[event.asset_id].symbol].change(event)
    for pool in pools.values():
        pool.grow(until)
    return pools


@pytest.mark.parametrize(
    ("seed", "at"),
    [("1", LAUNCH + 3 * DAY), pytest.param("7", NOON, marks=pytest.mark.slow), ("winter", NOON - 19.37 * DAY)],
)
def test_debts_deposits_and_rates_are_the_fold_of_all_events(seed: str, at: datetime) -> None:
    """Interest included. Each of some hundred events in a pool leaves less than a unit, and a share of it, in the pool;
    a unit of the smallest asset is a billionth of a token."""
    pools, shown = folded(seed, at), markets(seed, at)
    by_id = {market.asset_id: market for market in shown.values()}
    for position in positions(seed, at).values():
        for lent in position.lends:
            market = by_id[lent.asset_id].lend
            assert market
            redeems = (lent.held + lent.collateralized) * market.principal // market.receipt_supply
            expected = pools[ASSETS[lent.asset_id].symbol].lent.pop(position.address)
            assert abs(redeems - expected) <= 1_000 + expected / 10**9
        for account in position.accounts:
            for debt in claims_of(account.debts, by_id, "debt"):
                expected = pools[ASSETS[debt.asset_id].symbol].owed.pop((position.address, account.index))
                assert abs(debt.principal - expected) <= 1_000 + expected / 10**9
    for symbol, pool in pools.items():
        assert all(abs(rest) <= 1_000 for rest in (*pool.lent.values(), *pool.owed.values()))
        market = shown[symbol]
        assert market.debt and market.lend
        for rate, expected in zip((market.debt.apr, market.lend.apr), pool.rates, strict=True):
            assert abs(Fraction(rate) - expected) < Fraction(1, 10**7)


@few
@given(seeds, instants, st.integers(1, 86_400))
def test_interest_is_the_shown_rate_times_the_time_times_the_principal(seed: str, at: datetime, seconds: int) -> None:
    """Between two instants without an event in the pool."""
    later = at + seconds * SECOND
    changed = {one.asset_id for one in events(seed, at, later) if one.action in OF_POOLS or one.leg is Leg.DEBT}
    before, after = markets(seed, at), markets(seed, later)
    for symbol, then in before.items():
        now = after[symbol]
        if then.asset_id in changed or not (then.lend and now.lend and then.debt and now.debt):
            continue
        assert (now.lend.apr, now.debt.apr) == (then.lend.apr, then.debt.apr)
        # The shown amounts have the interest since the last event, on which there is none yet.
        rate, share = Fraction(then.debt.apr) * seconds / YEAR, Fraction(1, 100)
        assert abs(now.debt.balance - then.debt.balance * (1 + rate)) <= 2 + then.debt.balance * rate * share
        rate = Fraction(then.lend.apr) * seconds / YEAR
        assert abs(now.lend.principal - then.lend.principal * (1 + rate)) <= 2 + then.lend.principal * rate * share


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


INTO_WALLETS = {
    **dict.fromkeys((Action.BORROW, Action.REDEEM, Action.WITHDRAW_COLLATERAL, Action.CLAIM_WAR_CHEST), 1),
    **dict.fromkeys((Action.CLAIM_UNBONDED, Action.CLAIM_REWARDS, Action.CLAIM_TOKEN_UNLOCK), 1),
    **dict.fromkeys((Action.RETURN, Action.LEND, Action.DEPOSIT_COLLATERAL, Action.BOND, Action.SEND), -1),
}


@few
@given(seeds)
def test_wallets_change_by_events_and_by_what_comes_over_the_bridge(seed: str) -> None:
    """What came from outside is what events do not explain. It is never negative, and never falls."""
    outside: dict[tuple[str, str], int] = {}
    sums: Counter[tuple[str, str]] = Counter()
    for until in (LAUNCH + 5 * DAY, LAUNCH + 20 * DAY, NOON):
        since = {5: BEFORE, 20: LAUNCH + 5 * DAY}.get((until - LAUNCH).days, LAUNCH + 20 * DAY)
        for event in events(seed, since, until):
            sums[event.address, event.asset_id] += INTO_WALLETS.get(event.action, 0) * (event.amount or 0)
            if event.destination:
                sums[event.destination, event.asset_id] += event.amount or 0
        now = {
            (address, balance.asset_id): balance.amount - sums[address, balance.asset_id]
            for address, position in positions(seed, until).items()
            for balance in position.wallet
            if ASSETS.get(balance.asset_id) and balance.asset_id not in RECEIPTS
        }
        assert all(brought >= outside.get(key, 0) for key, brought in now.items())
        outside |= now


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


@few
@given(seeds, instants)
def test_receipt_tokens_are_held_or_posted_by_the_same_address(seed: str, at: datetime) -> None:
    for position in positions(seed, at).values():
        posted = Counter[str]()
        for account in position.accounts:
            posted.update(
                {RECEIPTS[one.asset_id]: one.shares for one in account.collaterals if one.asset_id in RECEIPTS}
            )
        held = {RECEIPTS[one.asset_id]: one.amount for one in position.wallet if one.asset_id in RECEIPTS}
        assert posted == {one.asset_id: one.collateralized for one in position.lends if one.collateralized}
        assert held == {one.asset_id: one.held for one in position.lends if one.held}


def healths(seed: str, at: datetime, account: Account, position: Position) -> Health:
    """As the service works it out."""
    source, usd = SimulatedSource(seed), prices(seed, at)
    by_id = {market.asset_id: market for market in source.markets(at)}
    config = source.config(at)

    def worth(asset_id: str, amount: int) -> Decimal:
        return exact_value(amount, ASSETS[asset_id].decimals_denom, usd[asset_id])

    secured = []
    for claim in claims_of(account.collaterals, by_id, "collateral"):
        collateral = by_id[claim.asset_id].collateral
        assert collateral
        secured.append((worth(claim.asset_id, claim.principal), collateral.config.liquidation_ltv))
    weights = {pool.index: pool.health_weight for pool in source.ptoken(at).pools}
    stakes = (stake for stake in position.stakes if stake.account_index == account.index)
    staked = sum_decimals(worth(config.ptoken, stake.amount) * weights[stake.pool] for stake in stakes)
    owed = sum_decimals(worth(claim.asset_id, claim.principal) for claim in claims_of(account.debts, by_id, "debt"))
    return account_health(secured, owed, staked, config)


@pytest.mark.parametrize("seed", [*(pytest.param(one, marks=pytest.mark.slow) for one in ("1", "7")), "winter"])
def test_a_liquidation_takes_what_the_discount_says_and_makes_the_account_healthier(seed: str) -> None:
    """The discount goes from the smallest to the largest as health falls from 1 by 0.2."""
    legs = [event for event in events(seed, end=NOON + 120 * DAY) if event.action is Action.LIQUIDATE]
    assert len(legs) >= 20
    for debt, collateral in zip(legs[::2], legs[1::2], strict=True):
        assert (debt.leg, collateral.leg) == (Leg.DEBT, Leg.COLLATERAL)
        assert (debt.tx_hash, debt.at, debt.account_index) == (
            collateral.tx_hash,
            collateral.at,
            collateral.account_index,
        )
        before, after = positions(seed, debt.at - SECOND)[debt.address], positions(seed, debt.at)[debt.address]
        (account,) = (one for one in before.accounts if one.index == debt.account_index)
        health = healths(seed, debt.at, account, before)
        assert health.result < 1
        rules = SimulatedSource(seed).markets(debt.at)
        (config,) = (one.collateral.config for one in rules if one.asset_id == collateral.asset_id and one.collateral)
        depth = min((1 - health.result) / Decimal("0.2"), Decimal(1))
        discount = config.min_discount + (config.max_discount - config.min_discount) * depth
        assert debt.price and collateral.price and debt.usd and collateral.usd
        # A unit of either is rounded away.
        units = sum(one.price.scaleb(-ASSETS[one.asset_id].decimals_denom) for one in (debt, collateral) if one.price)
        assert abs(collateral.usd - debt.usd * (1 + discount)) <= 2 * units + Decimal("1e-12") * debt.usd
        left = [one for one in after.accounts if one.index == debt.account_index]
        assert not left or healths(seed, debt.at, left[0], after).result > health.result


def test_nobody_borrows_or_withdraws_more_than_the_oracles_prices_allow() -> None:
    checked = 0
    for event in events("1")[::5]:
        if event.action not in (Action.BORROW, Action.WITHDRAW_COLLATERAL):
            continue
        position, usd = positions("1", event.at)[event.address], prices("1", event.at)
        by_id = {market.asset_id: market for market in SOURCE.markets(event.at)}
        for account in position.accounts:
            if account.index == event.account_index and account.debts:
                owed, allowed = Decimal(0), Decimal(0)
                for debt in claims_of(account.debts, by_id, "debt"):
                    owed += exact_value(debt.principal, ASSETS[debt.asset_id].decimals_denom, usd[debt.asset_id])
                for held in account.collaterals:
                    market = by_id[held.asset_id].collateral
                    assert market
                    worth = exact_value(held.shares, ASSETS[held.asset_id].decimals_denom, usd[held.asset_id])
                    allowed += worth * market.config.allowable_ltv
                assert owed <= allowed * (1 + Decimal("1e-9"))
                checked += 1
    assert checked > 20


@few
@given(seeds, instants)
def test_utilization_stays_below_its_limit(seed: str, at: datetime) -> None:
    for market in markets(seed, at).values():
        if market.lend and market.debt:
            assert market.debt.balance < market.lend.principal
        if market.collateral and market.collateral.config.collateral_cap is not None:
            assert market.collateral.balance <= market.collateral.config.collateral_cap
        if market.debt and market.debt.config.borrow_cap is not None:
            assert market.debt.balance <= market.debt.config.borrow_cap


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


@few
@given(seeds, instants)
def test_events_are_worth_their_amount_at_the_oracles_price(seed: str, at: datetime) -> None:
    for event in events(seed, at, at + DAY)[:20]:
        expected = prices(seed, event.at)[event.asset_id]
        assert event.price is not None
        # That of a receipt token follows from amounts that have changed by the event, and are rounded down.
        assert abs(event.price - expected) <= (expected * Decimal("1e-9") if event.asset_id in RECEIPTS else 0)
        assert (event.amount is None) == (event.usd is None) == (event.action is Action.CASCADE)
        if event.amount is not None and event.usd is not None:
            exact = Fraction(event.amount) * Fraction(event.price) / 10 ** ASSETS[event.asset_id].decimals_denom
            assert Fraction(event.usd) == Fraction(round(exact * 10**18), 10**18)
        assert (event.destination is not None) == (event.action is Action.SEND)
        assert event.destination != event.address
        assert (event.leg is not None) == (event.action is Action.LIQUIDATE)
        assert (parse_address(event.contract), len(event.tx_hash)) == (event.contract, 64)


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


@few
@given(seeds)
def test_some_accounts_are_liquidatable_and_most_are_safe(seed: str) -> None:
    found = [
        healths(seed, NOON, account, position).result
        for position in list(positions(seed, NOON).values())[:60]
        for account in position.accounts
    ]
    assert 0 < len([one for one in found if one < 1]) < len(found) / 5
    assert len([one for one in found if one > Decimal("1.1")]) > len(found) / 2


def test_a_month_sees_events_of_all_kinds() -> None:
    seen = Counter(event.action for event in events("1"))
    assert set(seen) == set(Action)
    assert seen[Action.BORROW] > 100
    assert (seen[Action.CREATE_TOKEN_UNLOCK], seen[Action.RECLAIM_TOKEN_UNLOCK]) == (6, 1)


def test_markets_differ_in_what_they_offer() -> None:
    listed = markets("1", NOON)
    assert {symbol for symbol, one in listed.items() if one.lend and one.debt} == set(CURVES)
    assert listed["QRY"].collateral is None
    assert (listed["stETH"].lend, listed["stETH"].debt) == (None, None)
    assert "rQRY" not in listed
    sides = {symbol: one.collateral for symbol, one in listed.items() if one.collateral}
    assert {symbol for symbol, one in sides.items() if not one.config.enabled} == {"HUSD", "stORB", "rORB"}
    assert {symbol for symbol, one in sides.items() if not one.shares} == {"HUSD", "stORB", "rORB"}
    caps = {symbol: sides[symbol].config.collateral_cap for symbol in ("ETH", "HEL", "rHEL")}
    assert caps == {"ETH": None, "HEL": 26_000_000 * 10**18, "rHEL": 26_000_000 * 10**18}


def test_before_launch_all_markets_exist_and_are_empty() -> None:
    for market in SOURCE.markets(BEFORE):
        assert market.collateral is None or market.collateral.balance == 0
        assert market.debt is None or market.debt.shares == market.debt.balance == 0
        assert market.lend is None or market.lend.principal == market.lend.receipt_supply == 0
    assert not list(SOURCE.positions(BEFORE))
    assert not SOURCE.events(LAUNCH - DAY, BEFORE)
