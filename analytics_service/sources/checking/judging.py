"""What is wrong, or looks wrong, in a source's answers about one instant: ids, ranges, units, and what does not fit."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

from analytics_service.market.addresses import parse_address
from analytics_service.market.assets import Asset, AssetKind, line_of, linked, origins_of
from analytics_service.market.events import Action
from analytics_service.market.fields import columns_of, row_of
from analytics_service.market.instants import OLDEST, shown
from analytics_service.market.kinds import Rate, Ratio
from analytics_service.market.markets import NO_CONFIG
from analytics_service.market.misfits import listed, named
from analytics_service.market.prices import Price, quoted
from analytics_service.market.ptoken import STAND_IN
from analytics_service.market.shares import lends_of, with_receipt_prices
from analytics_service.market.values import ONE, ZERO, exact_value, rounded, total
from analytics_service.sources.checking.findings import Finding, Records, error, note, warning

_DAY = timedelta(days=1)
# How far a clock of the source may be ahead without a word.
_CLOCKS = timedelta(minutes=1)
# USD per standard unit that no asset is worth, and USD value that no market has.
_HIGHEST_PRICE, _HIGHEST_VALUE = Decimal(10) ** 7, Decimal(10) ** 13
_LOWEST_PRICE = Decimal(10) ** -12
# A whole market of less than this many standard units: its amounts are probably in standard units already.
_SMALLEST_MARKET = Decimal("0.001")
# USD.
_CENT = Decimal("0.01")
_MANY_DECIMALS = 36
# More than tokens usually have.
_UNUSUAL_DECIMALS = 25
_SUMMED = (Action.BORROW, Action.LIQUIDATE, Action.BORROW_FLASH_LOAN)

# Parts of which each record has an id, an address, or an address and an index for itself, and what to do if not.
_IDENTITIES = {
    "assets": "Define each asset once, in one spelling, such as lower case.",
    "markets": "Put lend, collateral and debt of an asset into one Market.",
    "events": "Only one event of an id is kept.",
    "positions": "Make one Position of all items of an address.",
    "arrangements": "Each arrangement of an address has an index of its own.",
}


class SourceAnswers(dict[str, Records]):
    """A source's answers about an instant by part, as far as the store can hold them."""

    def __missing__(self, part: str) -> Records:
        return ()

    @cached_property
    def by_id(self) -> Mapping[str, Asset]:
        """The assets by id, each with its receipt token."""
        return linked({asset.id: asset for asset in self["assets"]})

    @cached_property
    def usd(self) -> Mapping[str, Decimal]:
        """The prices by asset id, with those of receipt tokens that follow from them."""
        prices = with_receipt_prices(quoted(self["prices"]), self.by_id, self["markets"])
        return {asset_id: usd for asset_id, usd in prices.items() if usd is not None}


def judge(at: datetime, answers: Mapping[str, Records]) -> Iterator[Finding]:
    """Everything that is wrong, or looks wrong, in a source's answers about an instant, by part."""
    for rules in (_identities, _decimals, _prices, _markets, _events, _positions):
        yield from rules(at, SourceAnswers(answers))


def judge_decimals(at: datetime, now: Sequence[Asset], then: Sequence[Asset]) -> Iterator[Finding]:
    """Assets whose decimals as of an instant are not those of now."""
    decimals = {asset.id: asset.decimals_denom for asset in now}
    if changed := [asset.id for asset in then if asset.decimals_denom != decimals.get(asset.id, asset.decimals_denom)]:
        yield error(
            f"assets: other decimals_denom as of {shown(at)}: {listed(changed)}. Decimals never change: what comes "
            "with others is left out."
        )


def judge_past_prices(at: datetime, prices: Sequence[Price]) -> Iterator[Finding]:
    """Prices that claim to be later than the instant that they were asked for."""
    if late := [price for price in prices if price.observed_at > at + _CLOCKS]:
        yield error(
            f"prices: asked as of {shown(at)}, there are later prices, as of {shown(late[0].observed_at)}: "
            f"{listed(price.asset_id for price in late)}. Answer with the prices of that time."
        )


def judge_unmoved_prices(now: Sequence[Price], then: Sequence[Price]) -> Iterator[Finding]:
    """Prices of the past that are all those of now, although each has a time of its own. Prices of 1 USD do not count,
    because that of a stablecoin may stay."""
    present = {price.asset_id: price for price in now if price.usd != ONE}
    past = [(price, present[price.asset_id]) for price in then if price.asset_id in present]
    moved = [price.asset_id for price, newer in past if price.observed_at < newer.observed_at]
    if moved and all(price.usd == newer.usd for price, newer in past):
        yield warning(
            f"prices: those of the past are those of now, with another observed_at: {listed(moved)}. Answer with the "
            "prices of that time, and with the time at which each was observed."
        )


def _identities(at: datetime, answers: SourceAnswers) -> Iterator[Finding]:
    """Ids that stand more than once, or of no asset, and times and addresses that are none."""
    for part, hint in _IDENTITIES.items():
        names = Counter(named(record) if part == "events" else named(record).lower() for record in answers[part])
        if twice := [name for name, count in names.items() if count > 1]:
            yield error(f"{part}: more than once: {listed(twice)}. {hint}")
    origins = [(asset.id, asset.origin_asset) for asset in answers["assets"] if asset.origin_asset]
    if lost := [asset_id for asset_id, origin in origins if origin not in answers.by_id]:
        yield warning(f"assets: the origin_asset is not among the assets: {listed(lost)}.")
    redeemed = origins_of(answers.by_id.values())
    if circular := [asset_id for asset_id in redeemed if line_of(asset_id, redeemed)[-1] in redeemed]:
        yield warning(f"assets: receipt tokens of each other, which therefore have no price: {listed(circular)}.")
    for part, name in (("prices", "observed_at"), ("events", "at")):
        times = [(named(record), getattr(record, name)) for record in answers[part]]
        if old := [f"{record} ({shown(at)})" for record, at in times if at < OLDEST]:
            yield error(f"{part}: impossible {name}: {listed(old)}. Is it in another unit than seconds?")
    for part in ("prices", "markets", "events", "ptoken"):
        ids = [record.asset_id for record in answers[part] if record.asset_id != NO_CONFIG.ptoken]
        # That all assets are missing is said elsewhere.
        if answers["assets"] and (undefined := [asset_id for asset_id in ids if asset_id not in answers.by_id]):
            yield warning(f"{part}: not among the assets: {listed(undefined)}. Amounts stay in denom units.")
    for part in ("events", "positions", "arrangements", "swaps"):
        addresses = dict.fromkeys(record.address for record in answers[part])
        if bad := [one for one in addresses if not (one.startswith(STAND_IN) or _is_address(one))]:
            yield warning(
                f"{part}: addresses that cannot be asked for: {listed(bad)}. They must be bech32 with a valid checksum,"
                " or 0x and 40 hex digits."
            )


def _decimals(at: datetime, answers: SourceAnswers) -> Iterator[Finding]:
    """Many decimals, and receipt tokens of other decimals than their origin, or of a receipt token."""
    assets = answers["assets"]
    if many := [asset.id for asset in assets if asset.decimals_denom > _MANY_DECIMALS]:
        yield warning(f"assets: more than {_MANY_DECIMALS} decimals_denom: {listed(many)}. Is it a factor instead?")
    if odd := [asset for asset in assets if _UNUSUAL_DECIMALS <= asset.decimals_denom <= _MANY_DECIMALS]:
        yield note(
            f"assets: unusually many decimals_denom: {listed(f'{one.id} ({one.decimals_denom})' for one in odd)}. Such "
            "amounts are exact, but Float64 in the views of SQL."
        )
    origins = (
        (asset, answers.by_id.get(asset.origin_asset or "")) for asset in assets if asset.kind is AssetKind.RECEIPT
    )
    receipts = [(asset, origin) for asset, origin in origins if origin]
    apart = [(asset, origin) for asset, origin in receipts if asset.decimals_denom != origin.decimals_denom]
    if apart:
        named_apart = (f"{one.id} ({one.decimals_denom}, not {origin.decimals_denom})" for one, origin in apart)
        yield note(
            f"assets: receipt tokens with other decimals_denom than their origin: {listed(named_apart)}. Redemption "
            "ratios and prices are those of standard units."
        )
    if nested := [asset.id for asset, origin in receipts if origin.kind is AssetKind.RECEIPT]:
        yield note(
            f"assets: receipt tokens of receipt tokens: {listed(nested)}. They are priced through all of these, and "
            "what is lent again counts in no total."
        )


def _prices(at: datetime, answers: SourceAnswers) -> Iterator[Finding]:
    """Times, ranges and units of prices, and the assets that have none."""
    prices = answers["prices"]
    yield from judge_past_prices(at, prices)
    if stale := [price.asset_id for price in prices if OLDEST <= price.observed_at < at - _DAY]:
        yield warning(f"prices: more than a day old: {listed(stale)}. Is observed_at the true time?")
    if odd := [price for price in prices if not _LOWEST_PRICE <= price.usd <= _HIGHEST_PRICE]:
        yield warning(
            f"prices: 0, very low or very high: {listed(f'{price.asset_id} ({_plain(price.usd)})' for price in odd)}. "
            "Prices are USD per standard unit, not of denom units, nor scaled integers; leave out those not known."
        )
    if prices and (missing := [asset_id for asset_id in answers.by_id if asset_id not in answers.usd]):
        yield note(f"prices: assets without a price, and therefore without values: {listed(missing)}.")


def _markets(at: datetime, answers: SourceAnswers) -> Iterator[Finding]:
    """Rates, ratios and amounts of markets, and the fees of the rules."""
    markets = answers["markets"]
    parts = [(market.asset_id, part) for market in markets for part in (market.lend, market.collateral, market.debt)]
    yield from _above_one("markets", ((asset_id, part) for asset_id, part in parts if part))
    yield from _above_one("config", (("the rules", config) for config in answers["config"]))
    small, large = [], []
    for market in markets:
        lend, debt, asset = market.lend, market.debt, answers.by_id.get(market.asset_id)
        if lend and debt and debt.balance > lend.principal * 101 // 100:
            yield warning(f"markets: more debt than lend principal: {market.asset_id}. Are both in denom units?")
        parts_of = (lend and lend.principal, market.collateral and market.collateral.balance, debt and debt.balance)
        amount = max(part or 0 for part in parts_of)
        if asset is None or not amount:
            continue
        value = exact_value(amount, asset.decimals_denom, answers.usd.get(asset.id, ZERO))
        if exact_value(amount, asset.decimals_denom, ONE) < _SMALLEST_MARKET or ZERO < value < _CENT:
            small.append(f"{asset.id} ({amount})")
        if value > _HIGHEST_VALUE:
            large.append(f"{asset.id} ({amount})")
    owed = [market.asset_id for market in markets if market.debt and market.debt.balance]
    if unpriced := [asset_id for asset_id in owed if asset_id in answers.by_id and asset_id not in answers.usd]:
        yield warning(
            f"markets: debt in assets without a price: {listed(unpriced)}. Who owes them has no known health."
        )
    if small:
        yield warning(f"markets: hardly anything in them: {listed(small)}. Amounts are in denom units.")
    if large:
        yield warning(f"markets: worth more than 10^13 USD: {listed(large)}. Check decimals_denom and the price.")


def _above_one(part: str, records: Iterable[tuple[str, Any]]) -> Iterator[Finding]:
    """Fractions and rates of more than 100 %. Each record comes with its name."""
    high: dict[str, list[str]] = defaultdict(list)
    for name, record in records:
        kinds = columns_of(type(record))
        for field, value in row_of(record).items():
            if isinstance(kinds[field], (Ratio, Rate)) and value is not None and value > ONE:
                high[field].append(f"{name} ({_plain(value)})")
    for field, names in high.items():
        yield warning(f"{part}: {field} is more than 1, which is 100 %: {listed(names)}. It is a fraction.")


def _events(at: datetime, answers: SourceAnswers) -> Iterator[Finding]:
    """Times of events, and what an action must have."""
    events = answers["events"]
    if outside := [event.id for event in events if event.at >= at]:
        yield error(f"events: not before `end`: {listed(outside)}. They are dropped, and may be lost.")
    if moveless := [event.id for event in events if event.lacks_amount]:
        yield error(f"events: of lending, but without amount: {listed(moveless)}. They are left out.")
    if unvalued := [event.id for event in events if event.action in _SUMMED and event.usd is None]:
        yield warning(f"events: without usd, so they count in no sum of loans or liquidations: {listed(unvalued)}.")
    if legless := [event.id for event in events if event.action == Action.LIQUIDATE and event.leg is None]:
        yield warning(f"events: liquidations without leg, which count as the debt repaid: {listed(legless)}.")
    wrong = []
    for event in events:
        asset = answers.by_id.get(event.asset_id)
        if asset and event.amount is not None and event.usd is not None and event.price is not None:
            value = exact_value(event.amount, asset.decimals_denom, event.price)
            # A cent, and a part in a hundred, for values that the source has rounded.
            if abs(value - event.usd) > max(_CENT, abs(event.usd) / 100):
                wrong.append(f"{event.id} ({_plain(event.usd)} instead of {_plain(value)})")
    if wrong:
        yield warning(f"events: usd is not amount times price: {listed(wrong)}. Amounts are in denom units.")


def _positions(at: datetime, answers: SourceAnswers) -> Iterator[Finding]:
    """Assets, shares and pools of positions."""
    accounts = [account for position in answers["positions"] for account in position.accounts]
    posted = ((holding.asset_id, holding) for account in accounts for holding in account.collaterals)
    yield from _above_one("positions", (each for each in posted if each[1].liquidation_ltv or each[1].allowable_ltv))
    held: dict[str, Counter[str]] = {"collateral": Counter(), "debt": Counter(), "lend": Counter()}
    for position in answers["positions"]:
        for account in position.accounts:
            for kind, holdings in (("collateral", account.collaterals), ("debt", account.debts)):
                for holding in holdings:
                    held[kind][holding.asset_id] += holding.shares
        for lend in position.lends:
            held["lend"][lend.asset_id] += lend.held + lend.collateralized
    origins, markets = origins_of(answers.by_id.values()), {market.asset_id: market for market in answers["markets"]}
    lends = ((position, lends_of(position, origins, lambda: markets)) for position in answers["positions"])
    if lacking := {lent.asset_id for position, every in lends for lent in every if lent not in position.lends}:
        yield note(
            f"positions: lends leave out receipt tokens in wallets, or among collateral, of {listed(sorted(lacking))}. "
            "They count as lent all the same."
        )
    amounts = Counter[str]()
    for kind, sums in held.items():
        amounts += sums
        parts = [(market.asset_id, getattr(market, kind)) for market in answers["markets"]]
        totals = {key: part.receipt_supply if kind == "lend" else part.shares for key, part in parts if part}
        over = [key for key, amount in sums.items() if amount > totals.get(key, 0) * 101 // 100]
        if answers["markets"] and over:
            yield warning(
                f"positions: more {kind} than the market has: {listed(over)}. Holdings are shares, and those of lend "
                "are receipt tokens."
            )
    values = [
        exact_value(amount, answers.by_id[key].decimals_denom, answers.usd[key])
        for key, amount in amounts.items()
        if key in answers.by_id and answers.usd.get(key)
    ]
    if values and total(values) < _CENT:
        yield warning("positions: all of them are worth less than a cent. Shares are in denom units.")
    pools = {pool.index for ptoken in answers["ptoken"] for pool in ptoken.pools}
    stakes = [stake.pool for position in answers["positions"] for stake in position.stakes]
    if lost := [str(pool) for pool in stakes if pool not in pools]:
        yield warning(f"positions: stakes in pools that ptoken does not have: {listed(lost)}.")


def _is_address(address: str) -> bool:
    try:
        parse_address(address)
    except ValueError:
        return False
    return True


def _plain(value: Decimal) -> str:
    return f"{rounded(value):f}"
