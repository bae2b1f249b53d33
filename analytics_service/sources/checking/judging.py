"""What is wrong, or looks wrong, in a source's answers about one instant: ids, ranges, units, and what does not fit."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import Any

from analytics_service.market.addresses import parse_address
from analytics_service.market.assets import Asset, AssetKind, id_key, linked
from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.fields import columns_of, row_of
from analytics_service.market.instants import shown
from analytics_service.market.kinds import Rate, Ratio
from analytics_service.market.markets import NO_CONFIG, GlobalConfig, Market
from analytics_service.market.positions import Position, SwapContract
from analytics_service.market.prices import Price, quoted
from analytics_service.market.ptoken import Arrangement, Ptoken
from analytics_service.market.shares import receipt_price, with_receipt_prices
from analytics_service.market.spreadsheets import is_formula
from analytics_service.market.values import ONE, ZERO, exact_value, rounded, total
from analytics_service.sources.checking.findings import Finding, error, listed, note, warning
from analytics_service.store.loans import is_lending

_DAY = timedelta(days=1)
# How far a clock of the source may be ahead without a word.
_CLOCKS = timedelta(minutes=1)
# Instants before this one come from a wrong unit of time.
_OLDEST = datetime(2009, 1, 1, tzinfo=UTC)
# USD per standard unit that no asset is worth, and USD value that no market has.
_HIGHEST_PRICE, _HIGHEST_VALUE = Decimal(10) ** 7, Decimal(10) ** 13
_LOWEST_PRICE = Decimal(10) ** -12
# A whole market of less than this many standard units: its amounts are probably in standard units already.
_SMALLEST_MARKET = Decimal("0.001")
# USD.
_CENT = Decimal("0.01")
_MANY_DECIMALS = 36
_OF_ACCOUNTS = (Action.BORROW, Action.RETURN, Action.DEPOSIT_COLLATERAL, Action.WITHDRAW_COLLATERAL, Action.LIQUIDATE)
_SUMMED = (Action.BORROW, Action.LIQUIDATE, Action.BORROW_FLASH_LOAN)


@dataclass(frozen=True)
class SourceAnswers:
    """A source's answers about an instant, as far as the store can hold them."""

    at: datetime
    assets: Sequence[Asset] = ()
    prices: Sequence[Price] = ()
    markets: Sequence[Market] = ()
    config: Sequence[GlobalConfig] = ()
    events: Sequence[Event] = ()
    ptoken: Sequence[Ptoken] = ()
    arrangements: Sequence[Arrangement] = ()
    positions: Sequence[Position] = ()
    swaps: Sequence[SwapContract] = ()

    @cached_property
    def by_id(self) -> Mapping[str, Asset]:
        """The assets by id, each with its receipt token."""
        return linked({asset.id: asset for asset in self.assets})

    def undefined(self, asset_ids: Iterable[str]) -> list[str]:
        """Those of the ids that no asset has; none when all assets are missing, which is said elsewhere."""
        return [asset_id for asset_id in asset_ids if asset_id not in self.by_id] if self.assets else []

    @cached_property
    def usd(self) -> Mapping[str, Decimal]:
        """The prices by asset id, with those of receipt tokens that follow from them."""
        return with_receipt_prices(quoted(self.prices), self.by_id, self.markets)


def judge(answers: SourceAnswers) -> Iterator[Finding]:
    """Everything that is wrong, or looks wrong, in a source's answers about an instant."""
    yield from judge_assets(answers)
    yield from judge_prices(answers)
    yield from judge_markets(answers)
    yield from judge_rules(answers)
    yield from judge_events(answers)
    yield from judge_positions(answers)
    yield from judge_others(answers)


def judge_assets(answers: SourceAnswers) -> Iterator[Finding]:
    """Ids, symbols, decimals, and the assets that others refer to."""
    assets, by_id = answers.assets, answers.by_id
    if twice := _repeated(asset.id for asset in assets):
        yield error(f"assets: more than once: {listed(twice)}. Define each asset once.")
    spellings = Counter(id_key(asset_id) for asset_id in by_id)
    if doubled := [asset_id for asset_id in by_id if spellings[id_key(asset_id)] > 1]:
        yield error(
            f"assets: ids that differ only in case: {listed(doubled)}. Use one spelling everywhere, such as lower case."
        )
    if same := _repeated(asset.symbol.casefold() for asset in by_id.values()):
        yield warning(f"assets: symbols of several assets: {listed(same)}. `symbols=` cannot tell these apart.")
    if bad := [asset.id for asset in assets if not asset.symbol or "," in asset.symbol or is_formula(asset.symbol)]:
        yield warning(
            f"assets: symbols that are empty, have a comma, or begin as a formula of a spreadsheet does: {listed(bad)}."
        )
    if many := [asset.id for asset in assets if asset.decimals_denom > _MANY_DECIMALS]:
        yield warning(f"assets: more than {_MANY_DECIMALS} decimals_denom: {listed(many)}. Is it a factor instead?")
    if lost := [asset.id for asset in assets if asset.origin_asset and asset.origin_asset not in by_id]:
        yield warning(f"assets: the origin_asset is not among the assets: {listed(lost)}.")
    if lone := [asset.id for asset in assets if asset.kind != AssetKind.REGULAR and not asset.origin_asset]:
        yield warning(f"assets: receipt and liquid-staking tokens without origin_asset: {listed(lone)}.")


def judge_prices(answers: SourceAnswers) -> Iterator[Finding]:
    """Times, ranges and units of prices, and the assets that have none."""
    prices, by_id = answers.prices, answers.by_id
    yield from _times_of_prices(answers)
    if twice := _repeated(price.asset_id for price in prices):
        yield warning(f"prices: more than one of an asset: {listed(twice)}. The newest counts as the present one.")
    if undefined := answers.undefined(price.asset_id for price in prices):
        yield warning(f"prices: not among the assets: {listed(undefined)}. Define them there.")
    if zero := [price.asset_id for price in prices if not price.usd]:
        yield warning(f"prices: 0 USD: {listed(zero)}. Leave out an asset whose price is not known.")
    if high := [f"{price.asset_id} ({_plain(price.usd)})" for price in prices if price.usd > _HIGHEST_PRICE]:
        yield warning(
            f"prices: very high: {listed(high)}. Prices are USD per standard unit: are these scaled integers?"
        )
    if low := [f"{price.asset_id} ({_plain(price.usd)})" for price in prices if ZERO < price.usd < _LOWEST_PRICE]:
        yield warning(f"prices: very low: {listed(low)}. Prices are those of standard units, not of denom units.")
    if prices and (missing := [asset_id for asset_id in by_id if asset_id not in answers.usd]):
        yield note(f"prices: assets without a price, and therefore without values: {listed(missing)}.")
    yield from _receipts(answers, quoted(prices))


def judge_past_prices(answers: SourceAnswers) -> Iterator[Finding]:
    """Prices that claim to be later than the instant that they were asked for."""
    if late := [price for price in answers.prices if price.observed_at > answers.at + _CLOCKS]:
        yield error(
            f"prices: asked as of {shown(answers.at)}, there are later prices, as of {shown(late[0].observed_at)}: "
            f"{listed(price.asset_id for price in late)}. Answer with the prices of that time."
        )


def judge_unmoved_prices(now: SourceAnswers, earlier: Sequence[SourceAnswers]) -> Iterator[Finding]:
    """Prices that have been the same for days, although each has a time of its own. `earlier` has the newest first.
    Prices of 1 USD do not count, because that of a stablecoin may stay."""
    present = {price.asset_id: price for price in now.prices if price.usd != ONE}
    past = [(answers, price) for answers in earlier for price in answers.prices if price.asset_id in present]
    if any(price.usd != present[price.asset_id].usd for _, price in past):
        return
    days_ago = [price for answers, price in past if answers.at <= now.at - _DAY]
    if moved := [price.asset_id for price in days_ago if price.observed_at < present[price.asset_id].observed_at]:
        yield warning(
            f"prices: those of {shown(earlier[-1].at)} are those of now, with another observed_at: {listed(moved)}. "
            "Answer with the prices of that time, and with the time at which each was observed."
        )


def _times_of_prices(answers: SourceAnswers) -> Iterator[Finding]:
    prices, at = answers.prices, answers.at
    yield from judge_past_prices(answers)
    if unit := [f"{price.asset_id} ({shown(price.observed_at)})" for price in prices if price.observed_at < _OLDEST]:
        yield error(f"prices: impossible observed_at: {listed(unit)}. Is it in another unit than seconds?")
    if stale := [price.asset_id for price in prices if _OLDEST <= price.observed_at < at - _DAY]:
        yield warning(f"prices: more than a day old: {listed(stale)}. Is observed_at the true time?")
    if parts := [price.asset_id for price in prices if price.observed_at.microsecond]:
        yield note(f"prices: fractions of a second in observed_at, which are cut off: {listed(parts)}.")


def _receipts(answers: SourceAnswers, usd: Mapping[str, Decimal]) -> Iterator[Finding]:
    """Receipt tokens whose price is not what they redeem for."""
    for market in answers.markets:
        asset = answers.by_id.get(market.asset_id)
        receipt = (asset.receipt_asset if asset else None) or ""
        if market.lend is None or receipt not in usd or market.asset_id not in usd:
            continue
        redeems = receipt_price(usd[market.asset_id], market.lend)
        if not redeems <= 2 * usd[receipt] <= 4 * redeems:
            yield warning(
                f"prices: the receipt token {receipt} costs {_plain(usd[receipt])} USD, but redeems for {redeems}. "
                "Check principal and receipt_supply, or leave out its price: then it is computed."
            )


def judge_markets(answers: SourceAnswers) -> Iterator[Finding]:
    """Ids, rates, ratios and amounts of markets."""
    markets = answers.markets
    if twice := _repeated(market.asset_id for market in markets):
        yield error(
            f"markets: more than one of an asset: {listed(twice)}. Put lend, collateral and debt into one Market."
        )
    if undefined := answers.undefined(market.asset_id for market in markets):
        yield warning(f"markets: not among the assets: {listed(undefined)}. Amounts stay in denom units.")
    unpriced = [market.asset_id for market in markets if market.asset_id not in answers.usd]
    if answers.prices and unpriced:
        yield warning(f"markets: without a price, so they count nowhere in USD: {listed(unpriced)}.")
    parts = [(market.asset_id, part) for market in markets for part in (market.lend, market.collateral, market.debt)]
    yield from _above_one("markets", ((asset_id, part) for asset_id, part in parts if part))
    collateral = [(market.asset_id, market.collateral.config) for market in markets if market.collateral]
    if turned := [asset_id for asset_id, config in collateral if config.allowable_ltv > config.liquidation_ltv]:
        yield warning(f"markets: allowable_ltv is above liquidation_ltv: {listed(turned)}.")
    if over := [market.asset_id for market in markets if _is_overlent(market)]:
        yield warning(f"markets: more debt than lend principal: {listed(over)}. Are both in denom units?")
    yield from _amounts(answers)


def _above_one(part: str, records: Iterable[tuple[str, Any]]) -> Iterator[Finding]:
    """Fractions and rates of more than 100 %. Each record comes with its name."""
    high: dict[str, list[str]] = defaultdict(list)
    for name, record in records:
        kinds = columns_of(type(record))
        for field, value in row_of(record).items():
            if isinstance(kinds[field], (Ratio, Rate)) and value > ONE:
                high[field].append(f"{name} ({_plain(value)})")
    for field, names in high.items():
        yield warning(f"{part}: {field} is more than 1, which is 100 %: {listed(names)}. It is a fraction.")


def _is_overlent(market: Market) -> bool:
    lend, debt = market.lend, market.debt
    return lend is not None and debt is not None and debt.balance > lend.principal * 101 // 100


def _amounts(answers: SourceAnswers) -> Iterator[Finding]:
    """Amounts of whole markets that are hardly in denom units."""
    small, large = [], []
    for market in answers.markets:
        asset = answers.by_id.get(market.asset_id)
        parts = (market.lend and market.lend.principal, market.collateral and market.collateral.balance)
        amount = max((*(part or 0 for part in parts), market.debt.balance if market.debt else 0))
        if asset is None or not amount:
            continue
        value = exact_value(amount, asset.decimals_denom, answers.usd.get(asset.id, ZERO))
        if exact_value(amount, asset.decimals_denom, ONE) < _SMALLEST_MARKET or ZERO < value < _CENT:
            small.append(f"{asset.id} ({amount})")
        if value > _HIGHEST_VALUE:
            large.append(f"{asset.id} ({amount})")
    if small:
        yield warning(f"markets: hardly anything in them: {listed(small)}. Amounts are in denom units.")
    if large:
        yield warning(f"markets: worth more than 10^13 USD: {listed(large)}. Check decimals_denom and the price.")


def judge_rules(answers: SourceAnswers) -> Iterator[Finding]:
    """Fees, and the assets that the rules name."""
    yield from _above_one("config", (("the rules", config) for config in answers.config))
    for config in answers.config:
        named = {config.hnative, config.ptoken} - {NO_CONFIG.ptoken}
        if undefined := answers.undefined(sorted(named)):
            yield note(f"config: not among the assets: {listed(undefined)}.")


def judge_events(answers: SourceAnswers) -> Iterator[Finding]:
    """Ids, order, times, values and addresses of events."""
    events = answers.events
    if twice := _repeated(event.id for event in events):
        yield error(f"events: ids of more than one event: {listed(twice)}. Only one event of an id is kept.")
    if outside := [event.id for event in events if event.at > answers.at]:
        yield error(f"events: later than `until`: {listed(outside)}. They are dropped, and may be lost.")
    if any(later.at < earlier.at for earlier, later in pairwise(events)):
        yield warning("events: not in the order of time, oldest first.")
    if old := [event.id for event in events if event.at < _OLDEST]:
        yield error(f"events: impossible times: {listed(old)}. Are they in another unit than seconds?")
    if valueless := [event.id for event in events if event.action in _SUMMED and event.usd is None]:
        yield warning(f"events: without usd, so they count in no sum of loans or liquidations: {listed(valueless)}.")
    if moveless := [event.id for event in events if is_lending(event) and event.amount is None]:
        yield error(f"events: of lending, but without amount: {listed(moveless)}. The whole snapshot is lost.")
    if undefined := answers.undefined(event.asset_id for event in events):
        yield warning(f"events: not among the assets: {listed(undefined)}. Amounts stay in denom units.")
    if accountless := [event.id for event in events if event.action in _OF_ACCOUNTS and event.account_index is None]:
        yield warning(f"events: of a borrow account, but without account_index: {listed(accountless)}.")
    if legless := [event.id for event in events if event.action == Action.LIQUIDATE and event.leg is None]:
        yield warning(f"events: liquidations without leg, which count as the debt repaid: {listed(legless)}.")
    if torn := _torn_liquidations(events):
        yield warning(
            f"events: the legs of a liquidation have different tx_hash: {listed(torn)}. Both are of one transaction."
        )
    if unsent := [event.id for event in events if event.action == Action.SEND and not event.destination]:
        yield warning(f"events: sends without destination: {listed(unsent)}.")
    yield from _addresses("events", (event.address for event in events))
    yield from _values_of_events(answers)


def _torn_liquidations(events: Iterable[Event]) -> list[str]:
    """Where the debts and the collaterals of liquidations, of an address and an instant, are of other transactions."""
    hashes: dict[tuple[str, datetime], dict[Leg, set[str]]] = defaultdict(lambda: defaultdict(set))
    for event in events:
        if event.action == Action.LIQUIDATE and event.leg:
            hashes[event.address.lower(), event.at][event.leg].add(event.tx_hash)
    return [
        f"{address} at {shown(at)}"
        for (address, at), legs in hashes.items()
        if len(legs) == len(Leg) and legs[Leg.DEBT] != legs[Leg.COLLATERAL]
    ]


def _values_of_events(answers: SourceAnswers) -> Iterator[Finding]:
    wrong = []
    for event in answers.events:
        asset = answers.by_id.get(event.asset_id)
        if asset is None or event.amount is None or event.usd is None or event.price is None:
            continue
        value = exact_value(event.amount, asset.decimals_denom, event.price)
        # A cent, and a part in a hundred, for values that the source has rounded.
        if abs(value - event.usd) > max(_CENT, abs(event.usd) / 100):
            wrong.append(f"{event.id} ({_plain(event.usd)} instead of {_plain(value)})")
    if wrong:
        yield warning(f"events: usd is not amount times price: {listed(wrong)}. Amounts are in denom units.")


def judge_positions(answers: SourceAnswers) -> Iterator[Finding]:
    """Addresses, assets and shares of positions."""
    positions, markets = answers.positions, {market.asset_id: market for market in answers.markets}
    if twice := _repeated(position.address.lower() for position in positions):
        yield error(f"positions: more than one of an address: {listed(twice)}. Make one Position of all its items.")
    yield from _addresses("positions", (position.address for position in positions))
    collateral, debt, lent = Counter[str](), Counter[str](), Counter[str]()
    for position in positions:
        for account in position.accounts:
            for sums, holdings in ((collateral, account.collaterals), (debt, account.debts)):
                for holding in holdings:
                    sums[holding.asset_id] += holding.shares
        for lend in position.lends:
            lent[lend.asset_id] += lend.held + lend.collateralized
    of_markets = {
        "collateral": (collateral, {key: it.collateral.shares for key, it in markets.items() if it.collateral}),
        "debt": (debt, {key: it.debt.shares for key, it in markets.items() if it.debt}),
        "lend": (lent, {key: it.lend.receipt_supply for key, it in markets.items() if it.lend}),
    }
    for kind, (sums, totals) in of_markets.items():
        without = [asset_id for asset_id in sums if asset_id not in totals]
        if markets and without:
            yield warning(f"positions: held as {kind}, but without a {kind} market: {listed(without)}.")
        if over := [key for key, amount in sums.items() if key in totals and amount > totals[key] * 101 // 100]:
            yield warning(
                f"positions: more {kind} than the market has: {listed(over)}. Holdings are shares, and those of lend "
                "are receipt tokens."
            )
    values = [
        exact_value(amount, answers.by_id[key].decimals_denom, answers.usd[key])
        for key, amount in (collateral + debt + lent).items()
        if key in answers.by_id and answers.usd.get(key)
    ]
    if values and total(values) < _CENT:
        yield warning("positions: all of them are worth less than a cent. Shares are in denom units.")
    pools = {pool.index for ptoken in answers.ptoken for pool in ptoken.pools}
    if lost := [str(stake.pool) for position in positions for stake in position.stakes if stake.pool not in pools]:
        yield warning(f"positions: stakes in pools that ptoken does not have: {listed(lost)}.")


def judge_others(answers: SourceAnswers) -> Iterator[Finding]:
    """The protocol token, unlocks and swap routes."""
    for ptoken in answers.ptoken:
        if not ptoken.pools:
            yield note("ptoken: it has no pools, so there is no staking.")
        if (ptoken.pools or ptoken.total_supply) and answers.undefined([ptoken.asset_id]):
            yield warning(f"ptoken: not among the assets: {ptoken.asset_id}. Amounts stay in denom units.")
    keys = [f"{arrangement.address.lower()} {arrangement.index}" for arrangement in answers.arrangements]
    if twice := _repeated(keys):
        yield error(f"arrangements: more than once: {listed(twice)}. Each of an address has an index of its own.")
    yield from _addresses("arrangements", (arrangement.address for arrangement in answers.arrangements))
    yield from _addresses("swaps", (contract.address for contract in answers.swaps))
    denoms = {asset.symbol_denom for asset in answers.assets}
    routed = {denom for contract in answers.swaps for source, to in contract.routes.items() for denom in (source, *to)}
    if undefined := sorted(routed - denoms):
        yield note(f"swaps: symbol_denom of no asset: {listed(undefined)}.")


def _addresses(part: str, addresses: Iterable[str]) -> Iterator[Finding]:
    bad = [address for address in dict.fromkeys(addresses) if not _is_address(address)]
    if bad:
        yield warning(
            f"{part}: addresses that cannot be asked for: {listed(bad)}. They must be bech32 with a valid checksum, or "
            "0x and 40 hex digits."
        )


def _is_address(address: str) -> bool:
    try:
        parse_address(address)
    except ValueError:
        return False
    return True


def _plain(value: Decimal) -> str:
    """A number without exponent and trailing zeros."""
    return f"{rounded(value):f}"


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
