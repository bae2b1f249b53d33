"""Amounts behind shares of collateral and debt markets, and behind receipt tokens, which are shares of deposits."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

from analytics_service.market.assets import Asset
from analytics_service.market.decimals import EXACT, ONE, quantize_below_limit, round_decimal
from analytics_service.market.kinds import Amount
from analytics_service.market.markets import CollateralMarket, DebtMarket, LendMarket, Market
from analytics_service.market.positions import Holding, LendPosition, Position
from analytics_service.market.prices import Prices


def share_of(balance: int, shares: int, all_shares: int) -> int:
    """The part of a balance behind some of its shares, in denom units; 0 if there are no shares. It is rounded down,
    for debts too, so that the sum over all accounts never exceeds the balance."""
    return shares * balance // all_shares if all_shares else 0


@dataclass(frozen=True, slots=True)
class LenderClaim:
    """An account's collateral or debt in an asset."""

    asset_id: str
    principal: Annotated[int, Amount("Amount behind the shares")]
    shares: Annotated[int, Amount("Shares of the market's balance")]


def principal_of(shares: int, market: CollateralMarket | DebtMarket | None) -> int:
    """The part of a market's balance behind shares, in denom units; 0 without a market, or if it has no shares."""
    return share_of(market.balance, shares, market.shares) if market else 0


def claims_of(
    holdings: Iterable[Holding], markets: Mapping[str, Market], side: Literal["collateral", "debt"]
) -> tuple[LenderClaim, ...]:
    """Claims on collateral or debt; `markets` are by asset id."""
    sides = ((holding, getattr(markets.get(holding.asset_id), side, None)) for holding in holdings)
    return tuple(LenderClaim(held.asset_id, principal_of(held.shares, market), held.shares) for held, market in sides)


def claim_totals(claims: Iterable[LenderClaim]) -> tuple[LenderClaim, ...]:
    """The sums of claims by asset, in ascending order of asset id."""
    sums: dict[str, LenderClaim] = {}
    for claim in claims:
        before = sums.get(claim.asset_id, LenderClaim(claim.asset_id, 0, 0))
        sums[claim.asset_id] = LenderClaim(
            claim.asset_id, before.principal + claim.principal, before.shares + claim.shares
        )
    return tuple(sums[asset_id] for asset_id in sorted(sums))


@dataclass(frozen=True, slots=True)
class Redemption:
    """A receipt token's redemption: a standard unit redeems `exact` units of an asset, maybe also a receipt token."""

    asset_id: str
    exact: Decimal


def redemption_ratio(lend: LendMarket, asset: Asset | None, token: Asset | None) -> Decimal:
    """Standard units of an asset that a standard unit of its receipt token redeems, with at most 18 decimals; 1 if no
    tokens exist. A token with unknown decimals has the decimals of its asset."""
    return round_decimal(_exact_ratio(lend, asset, token))


def _exact_ratio(lend: LendMarket, asset: Asset | None, token: Asset | None) -> Decimal:
    if not lend.receipt_supply:
        return ONE
    return EXACT.scaleb(EXACT.divide(lend.principal, lend.receipt_supply), _more_decimals(asset, token))


def origin_equivalent(receipts: int, lend: LendMarket, asset: Asset | None, token: Asset | None) -> int:
    """Denom units of the lent asset that an amount of its receipt token redeems, rounded down."""
    if lend.receipt_supply:
        return share_of(lend.principal, receipts, lend.receipt_supply)
    return int(EXACT.scaleb(receipts, -_more_decimals(asset, token)))


def _more_decimals(asset: Asset | None, token: Asset | None) -> int:
    """Decimals of a receipt token less decimals of its asset."""
    return token.decimals_denom - asset.decimals_denom if asset and token and token.is_described else 0


def lends_of(
    position: Position, origins: Mapping[str, str], markets: Callable[[], Mapping[str, Market]]
) -> tuple[LendPosition, ...]:
    """The deposits of an address: its receipt tokens, wherever they are, each once (rule 6.9, portfolio history).

    The source may list all of them as lent, or omit tokens in the wallet or among collateral. `origins` are the origins
    of receipt tokens, by id. `markets`, which convert shares of collateral, are read only if needed.
    """
    wallet = [balance for balance in position.wallet if balance.asset_id in origins]
    posted = [held for account in position.accounts for held in account.collaterals if held.asset_id in origins]
    if not (wallet or posted):
        return position.lends
    found: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for balance in wallet:
        found[origins[balance.asset_id]][0] += balance.amount
    for claim in claims_of(posted, markets(), "collateral") if posted else ():
        found[origins[claim.asset_id]][1] += claim.principal
    lends = {lent.asset_id: lent for lent in position.lends}
    for asset_id, (held, collateralized) in sorted(found.items()):
        if held or collateralized:
            lent = lends.get(asset_id, LendPosition(asset_id, 0, 0))
            lends[asset_id] = LendPosition(asset_id, max(lent.held, held), max(lent.collateralized, collateralized))
    return tuple(lends.values())


def redemptions(assets: Mapping[str, Asset], markets: Iterable[Market]) -> dict[str, Redemption]:
    """The redemptions of receipt tokens that have not ended, by id. `assets` are by id, from `link_receipts`."""
    redeemed: dict[str, Redemption] = {}
    for market in markets:
        asset = assets.get(market.asset_id)
        token_id = asset.receipt_asset if asset else None
        token = assets.get(token_id) if token_id else None
        if market.lend and token_id and not (token and token.ended_at):
            ratio = _exact_ratio(market.lend, asset, token)
            redeemed.setdefault(token_id, Redemption(market.asset_id, ratio))
    return redeemed


def redemption_depth(asset_id: str, quoted: Prices, redeemed: Mapping[str, Redemption]) -> list[Redemption]:
    """The redemptions from an asset down to the asset whose price it follows: none for an asset with a price of its
    own, several for a receipt token of a receipt token (rule 4.6, receipt prices). A cycle ends the chain."""
    steps: list[Redemption] = []
    passed = {asset_id}
    while quoted.get(asset_id) is None and (step := redeemed.get(asset_id)) and step.asset_id not in passed:
        steps.append(step)
        asset_id = step.asset_id
        passed.add(asset_id)
    return steps


def following_prices(quoted: Prices, redeemed: Mapping[str, Redemption]) -> dict[str, Decimal | None]:
    """Prices by asset id: quoted prices, and prices of unquoted receipt tokens that follow a quoted price (rule 4.6).
    These are unknown if the quoted price is unknown, or if they do not fit 18 decimals below 10^20."""
    prices = dict(quoted)
    for token_id in redeemed:
        steps = redemption_depth(token_id, quoted, redeemed)
        if any(step.asset_id in quoted for step in steps):
            price = quoted.get(steps[-1].asset_id)
            for step in reversed(steps):
                price = None if price is None else _redeemed_price(price, step.exact)
            prices[token_id] = price
    return prices


def _redeemed_price(price: Decimal, ratio: Decimal) -> Decimal | None:
    """Price times the rounded redemption ratio; None if it cannot be stored."""
    stored = quantize_below_limit(EXACT.multiply(price, round_decimal(ratio)))
    return None if stored is None or (price and ratio and not stored) else round_decimal(stored)


def with_receipt_prices(
    quoted: Prices, assets: Mapping[str, Asset], markets: Iterable[Market]
) -> dict[str, Decimal | None]:
    """`following_prices` for the receipt tokens of markets; see `redemptions` for the arguments."""
    return following_prices(quoted, redemptions(assets, markets))
