"""All borrow accounts of a snapshot in columns, and their values at given prices.

Amounts are whole numbers, and prices multiply them or their sums, so every value that is shown is exact and rounded
once. To compare an account with a bound, its values are first worked out in binary floating point, whose relative error
is below 10^-12. Whoever compares them calls `Valuation.values` for accounts within `NEAR` of a bound, which is exact.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from math import nan
from typing import Literal

import polars as pl

from analytics_service.concurrency import Part
from analytics_service.market.assets import Asset
from analytics_service.market.health import Health, account_health, liquidation_ltv
from analytics_service.market.markets import GlobalConfig, Market
from analytics_service.market.prices import Prices
from analytics_service.market.ptoken import Ptoken
from analytics_service.market.shares import Redemption, following_prices, redemptions, steps_below
from analytics_service.market.values import EXACT, ONE, ZERO, total

Side = Literal["collateral", "debt", "stake"]
# The relative distance from a bound within which exact values decide.
NEAR = 1e-9
# Whether an account owes something, and its health is known: from the columns of sums (`Valuation.sums`).
IS_OWING = (pl.col("debt") > 0) & pl.col("debt").is_not_nan() & pl.col("staked").is_not_nan()
_KEY = ["address", "account_index"]
_GROUP = ["kind", "asset_id", "pool", "liquidation_ltv"]


@dataclass(frozen=True, slots=True)
class Group:
    """What items have in common: their side of an account, their asset or staking pool, and their own liquidation LTV,
    if they have one."""

    side: Side
    asset_id: str
    pool: int
    own_ltv: Decimal | None = None


@dataclass(frozen=True)
class Book:
    """The borrow accounts of a snapshot, in the order of address and index; an account's number is its row.

    `items` has the columns account, group (its index in `groups`) and amount (a float), in the order of accounts.
    `amounts` are the exact amounts in denom units, none of them 0. The items of an account begin at its index in
    `begins`. `opened` is the number of accounts; others are only stakes for an account that does not exist. A hundred
    thousand accounts with three items each take about 20 MB.
    """

    accounts: pl.DataFrame
    opened: int
    groups: tuple[Group, ...]
    items: pl.DataFrame
    amounts: list[int]
    begins: pl.Series

    @Part
    def layers(self) -> list[tuple[pl.Series, pl.Series]]:
        """The accounts that have a first, second, ... item, and the rows of these items: sums over the items of each
        account are made layer by layer, which takes a tenth of the time of grouping."""
        first, counts = self.begins.head(-1), self.begins.diff().tail(-1)
        having = ((counts > layer).arg_true() for layer in range(max(counts, default=0)))
        return [(accounts, first.gather(accounts) + layer) for layer, accounts in enumerate(having)]

    @property
    def numbers(self) -> pl.Series:
        return pl.int_range(self.accounts.height, dtype=pl.UInt32, eager=True)

    def groups_of(self, side: Side) -> list[int]:
        return [index for index, group in enumerate(self.groups) if group.side == side]

    def items_of(self, account: int) -> Iterable[tuple[int, int]]:
        """Group and amount of each item of an account."""
        items = slice(self.begins[account], self.begins[account + 1])
        return zip(self.items["group"][items], self.amounts[items], strict=True)

    def sums(self, factors: Sequence[float]) -> pl.Series:
        """The sum of each account's amounts, each times the factor of its group."""
        values = self.items["amount"] * pl.Series(factors, dtype=pl.Float64).gather(self.items["group"])
        sums = pl.zeros(self.accounts.height, pl.Float64, eager=True)
        for accounts, items in self.layers:
            sums = sums.scatter(accounts, sums.gather(accounts) + values.gather(items))
        return sums


def book_of(parts: Iterable[pl.DataFrame], markets: Mapping[str, Market]) -> Book:
    """The book of items of kinds collateral, debt, account and stake, with columns address, kind, account_index,
    asset_id, pool, liquidation_ltv and amount (digits). Each part has all items of its addresses, and the parts are in
    the order of addresses. Collateral and debt are in shares of `markets`, which are by asset id."""
    begins_account = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in _KEY)
    groups: dict[Group, int] = {}
    accounts: list[pl.DataFrame] = []
    items: list[pl.DataFrame] = []
    amounts: list[int] = []
    opened = count = 0  # Accounts with more than stakes, and all.
    for part in parts:
        number = (begins_account.cum_sum() + (count - 1)).cast(pl.UInt32)
        rows = part.sort(_KEY, maintain_order=True).with_columns(account=number)
        own = rows.filter(begins_account).select(_KEY)
        # Texts of their own: else they would hold those of all items.
        accounts.append(own.with_columns(address=pl.Series(own["address"].to_list(), dtype=pl.String)))
        opened += rows.filter(pl.col("kind") != "stake")["account"].n_unique()
        count += accounts[-1].height
        kinds = rows.select(_GROUP).unique().filter(pl.col("kind") != "account")
        numbers = [groups.setdefault(Group(*group), len(groups)) for group in kinds.iter_rows()]
        kinds = kinds.with_columns(group=pl.Series(numbers, dtype=pl.UInt32))
        held = rows.join(kinds, on=_GROUP, nulls_equal=True, maintain_order="left")
        exact = _principals(held["amount"].to_list(), held["group"].to_list(), [*groups], markets)
        held = held.select("account", "group", amount=pl.Series(exact, dtype=pl.Float64))
        items.append(held.filter(pl.col("amount") > 0))
        amounts += filter(None, exact)
    order = sorted(groups, key=_in_order)
    ranks = pl.Series([order.index(group) for group in groups], dtype=pl.UInt32)
    held = pl.concat(items, rechunk=True).with_columns(group=pl.lit(ranks).gather("group"))
    ends = held["account"].search_sorted(pl.int_range(count, dtype=pl.UInt32, eager=True), side="right")
    begins = pl.concat([pl.Series([0], dtype=pl.UInt32), ends.cast(pl.UInt32)])
    return Book(pl.concat(accounts, rechunk=True), opened, tuple(order), held, amounts, begins)


def _in_order(group: Group) -> tuple[str, str, int, bool, Decimal]:
    return group.side, group.asset_id, group.pool, group.own_ltv is not None, group.own_ltv or ZERO


def _principals(
    digits: Sequence[str], item_groups: Sequence[int], groups: Sequence[Group], markets: Mapping[str, Market]
) -> list[int]:
    """The amount of each item: the part of its market's balance behind its shares (`part_of`, whose call would take as
    long as all else), or what is staked."""
    ratios = [_ratio(group, markets.get(group.asset_id)) for group in groups]
    balances, shares = [balance for balance, _ in ratios], [shares for _, shares in ratios]
    return [int(amount) * balances[group] // shares[group] for amount, group in zip(digits, item_groups, strict=True)]


def _ratio(group: Group, market: Market | None) -> tuple[int, int]:
    """Balance and shares, of which there are some, by which an item of the group has its amount."""
    if group.side == "stake":
        return 1, 1
    side = market and (market.collateral if group.side == "collateral" else market.debt)
    return (side.balance, side.shares) if side and side.shares else (0, 1)


@dataclass(frozen=True)
class Terms:
    """What the values and the health of accounts depend on, other than prices. Mappings are by asset id."""

    assets: Mapping[str, Asset]
    markets: Mapping[str, Market]
    config: GlobalConfig
    ptoken: Ptoken

    @Part
    def redeemed(self) -> dict[str, Redemption]:
        """What receipt tokens redeem, by their ids."""
        return redemptions(self.assets, self.markets.values())


@dataclass(frozen=True, slots=True)
class AccountValues:
    """Exact USD values of an account: each collateral with its liquidation LTV, all debts, and the weighted stakes."""

    collaterals: Sequence[tuple[Decimal, Decimal]]
    debt: Decimal
    staked: Decimal

    @property
    def collateral(self) -> Decimal:
        return total(value for value, _ in self.collaterals)

    @property
    def secured(self) -> Decimal:
        return total(EXACT.multiply(value, ltv) for value, ltv in self.collaterals)

    def health(self, config: GlobalConfig) -> Health:
        """The health that the path of the account shows (rule 6.4)."""
        return account_health(self.collaterals, self.debt, self.staked, config)


@dataclass(frozen=True)
class Valuation:
    """A book at the oracle's prices, or at other prices `quoted` in their place, by asset id.

    Tokens that are priced by their origin follow it (rule 4.6). Collateral that never had a price counts as nothing.
    """

    book: Book
    terms: Terms
    quoted: Prices

    @Part
    def prices(self) -> dict[str, Decimal | None]:
        return following_prices(self.quoted, self.terms.redeemed)

    @Part
    def known(self) -> dict[str, Decimal]:
        """The prices that are known."""
        return {asset_id: price for asset_id, price in self.prices.items() if price is not None}

    @Part
    def units(self) -> list[Decimal | None]:
        """The value of one denom unit of each group; None without a price. Stakes are weighted."""
        return [self.unit(group, self.prices.get(self.asset_of(group))) for group in self.book.groups]

    @Part
    def ltvs(self) -> list[Decimal]:
        """The liquidation LTV of each group of collateral; 0 of others."""
        markets = self.terms.markets
        return [
            liquidation_ltv(group.own_ltv, markets.get(group.asset_id)) if group.side == "collateral" else ZERO
            for group in self.book.groups
        ]

    @Part
    def sums(self) -> pl.DataFrame:
        """Columns collateral, secured, debt and staked: the values of each account as floats. Debt is not a number for
        an account that owes an asset without a price, or whose collateral has lost its price; nor is what is staked if
        that has. Then health is unknown, other than by a stake without debt."""
        return self.sums_at(self.units)

    @Part
    def unknown(self) -> set[int]:
        """The accounts of unknown health."""
        debt, staked = pl.col("debt"), pl.col("staked")
        # What is not a number is above 0, too.
        rows = self.sums.with_row_index("account").filter(debt.is_nan() | (staked.is_nan() & (debt > 0)))
        return {*rows["account"]}

    @property
    def unknown_owing(self) -> set[int]:
        """Those of unknown health that owe something."""
        return self._owing(self.unknown)

    def unpriced(self, side: Side) -> int:
        """The number of accounts that have or owe an asset without a price, whether it ever had one or not. What lost
        stakes make unknown counts as collateral."""
        accounts = self._having(group for group in self.book.groups_of(side) if self.units[group] is None)
        if side == "collateral":
            stakes = self.book.groups_of("stake")
            accounts |= self._owing(self._having(group for group in stakes if self._is_lost(self.book.groups[group])))
        return len(accounts)

    @Part
    def hides_debtors(self) -> bool:
        """Whether a lost price makes unknown the health of an account that owes something. A receipt token that redeems
        too much for any price is no reason: donations to its market could hide all others for good."""
        lost = (
            index
            for index, group in enumerate(self.book.groups)
            if self._is_lost(group) and self.quoted.get(self.base_of(self.asset_of(group))[0], ZERO) is None
        )
        return bool(self._owing(self._having(lost)))

    def _having(self, groups: Iterable[int]) -> set[int]:
        """The accounts that have an item of some groups."""
        return {*self.book.items.filter(pl.col("group").is_in([*groups]))["account"]}

    def _owing(self, accounts: set[int]) -> set[int]:
        """Those of some accounts that owe something. Debts worth 0 USD are none."""
        owed = (group for group in self.book.groups_of("debt") if self.units[group] != 0)
        return accounts and accounts & self._having(owed)

    def asset_of(self, group: Group) -> str:
        """The asset whose price values a group."""
        return self.terms.ptoken.asset_id if group.side == "stake" else group.asset_id

    def unit(self, group: Group, price: Decimal | None) -> Decimal | None:
        """The value of one denom unit of a group at a price of its asset; stakes are weighted."""
        asset = self.terms.assets.get(self.asset_of(group))
        if price is None:
            return None
        if group.side != "stake":
            return EXACT.scaleb(price, -asset.decimals_denom) if asset else None
        decimals = asset.decimals_denom if asset else 0
        weights = {pool.index: pool.health_weight for pool in self.terms.ptoken.pools}
        return EXACT.multiply(EXACT.scaleb(price, -decimals), weights.get(group.pool, ZERO))

    def units_along(self, asset_id: str) -> tuple[list[Decimal | None], list[Decimal | None]]:
        """The values of units as a line in the price of an asset: of those that stay, and at a price of 1 of those that
        move with it."""
        fixed: list[Decimal | None] = []
        slopes: list[Decimal | None] = []
        for group, unit in zip(self.book.groups, self.units, strict=True):
            base, ratio = self.base_of(self.asset_of(group))
            fixed.append(ZERO if base == asset_id else unit)
            slopes.append(self.unit(group, ratio if base == asset_id else ZERO))
        return fixed, slopes

    def base_of(self, asset_id: str) -> tuple[str, Decimal]:
        """The asset that another's price follows, which may be itself, and the units of it that one redeems."""
        steps = steps_below(asset_id, self.quoted, self.terms.redeemed)
        ratios = (step.exact for step in steps)
        return steps[-1].asset_id if steps else asset_id, reduce(EXACT.multiply, ratios, ONE)

    def underlying(self, asset_id: str) -> str:
        """The asset that another one stands for, which may be itself: the origin of a receipt or liquid-staking token
        without a price of its own (rule 6.8)."""
        passed: set[str] = set()
        while asset_id not in passed and self.quoted.get(asset_id) is None:
            passed.add(asset_id)
            step, asset = self.terms.redeemed.get(asset_id), self.terms.assets.get(asset_id)
            origin = step.asset_id if step else asset.origin_asset if asset else None
            asset_id = origin or asset_id
        return asset_id

    def sums_at(self, units: Sequence[Decimal | None]) -> pl.DataFrame:
        """The columns of `sums` with these values of units."""

        def of(side: Side, *needed: Side) -> list[float]:
            """The values of units of a side; not a number where what is needed of some sides is unknown."""
            return [
                nan
                if unit is None and group.side in needed and self._is_needed(group)
                else float(unit or ZERO)
                if group.side == side
                else 0.0
                for group, unit in zip(self.book.groups, units, strict=True)
            ]

        secured = [float((unit or ZERO) * ltv) for unit, ltv in zip(units, self.ltvs, strict=True)]
        return pl.DataFrame(
            {
                "collateral": self.book.sums(of("collateral")),
                "secured": self.book.sums(secured),
                "debt": self.book.sums(of("debt", "debt", "collateral")),
                "staked": self.book.sums(of("stake", "stake")),
            }
        )

    def known_value(self, account: int, side: Side) -> Decimal | None:
        """The exact value of one side of an account; None if health is unknown because of it."""
        groups, units = self.book.groups, self.units
        items = [(group, amount) for group, amount in self.book.items_of(account) if groups[group].side == side]
        if any(units[group] is None and self._is_needed(groups[group]) for group, _ in items):
            return None
        return total(EXACT.multiply(amount, units[group] or ZERO) for group, amount in items)

    def _is_needed(self, group: Group) -> bool:
        """Whether health is unknown without the price of a group: that of a debt, or one that was lost."""
        return group.side == "debt" or self._is_lost(group)

    def _is_lost(self, group: Group) -> bool:
        """Whether the price of a group was lost. Of stakes that add nothing to health, it does not matter."""
        if self.prices.get(self.asset_of(group), ZERO) is not None:
            return False
        return group.side != "stake" or bool(self.terms.config.staking_health_modifier and self.unit(group, ONE))

    def values(self, account: int, units: Sequence[Decimal | None] | None = None) -> AccountValues:
        """The exact values of an account, in the order of its items; at other values of units, if given."""
        units = self.units if units is None else units
        collaterals: list[tuple[Decimal, Decimal]] = []
        debts: list[Decimal] = []
        stakes: list[Decimal] = []
        for group, amount in self.book.items_of(account):
            side, value = self.book.groups[group].side, EXACT.multiply(amount, units[group] or ZERO)
            if side == "collateral":
                collaterals.append((value, self.ltvs[group]))
            else:
                (debts if side == "debt" else stakes).append(value)
        return AccountValues(collaterals, total(debts), total(stakes))
