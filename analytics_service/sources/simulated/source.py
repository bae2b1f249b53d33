"""The simulated protocol as a source: its state at a second, as domain records."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from analytics_service.market.assets import Asset
from analytics_service.market.events import Event
from analytics_service.market.instants import from_unix, unix_second
from analytics_service.market.markets import CollateralMarket, GlobalConfig, Market
from analytics_service.market.positions import Position, SwapContract
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, Ptoken, unlock_amounts
from analytics_service.sources.base import Source
from analytics_service.sources.simulated import people, terms, universe
from analytics_service.sources.simulated.ledger import world_ledger
from analytics_service.sources.simulated.people import Key
from analytics_service.sources.simulated.state import WorldState, fraction


class SimulatedSource(Source):
    """A protocol that is generated from a seed. It has a state at every whole second, past or future. Before the
    launch, 2025-01-01, it has assets, prices and empty markets, but neither positions nor events."""

    simulated = True
    may_hang = False
    # Prices, rates and loans of the past are cheap to compute.
    history: timedelta | None = timedelta(days=90)
    since: datetime | None = from_unix(terms.LAUNCH)
    sample_account = people.RICH_ADDRESS

    def __init__(self, seed: str) -> None:
        self._seed = seed or "1"

    @property
    def spec(self) -> str:
        """`simulated:<seed>`, even if the operator gave no seed."""
        return f"simulated:{self._seed}"

    def assets(self, at: datetime) -> Sequence[Asset]:
        return universe.ASSETS

    def prices(self, at: datetime) -> Sequence[Price]:
        """A price of every asset except receipt tokens, observed at the whole second."""
        second = unix_second(at)
        quoted = {asset_id: universe.usd_price(self._seed, asset_id, second) for asset_id in universe.LISTINGS}
        return [Price(asset_id, from_unix(second), fraction(usd)) for asset_id, usd in quoted.items()]

    def markets(self, at: datetime) -> Sequence[Market]:
        """All markets, in ascending order of asset id; before the launch they are empty."""
        state, second = self._state(at)
        posted, markets = state.sums("collateral"), []
        for asset_id in sorted({*terms.COLLATERALS, *terms.LENT}):
            rules, amount = terms.COLLATERALS.get(asset_id), posted[asset_id]
            lend, debt = state.pools[asset_id].markets(second) if asset_id in terms.LENT else (None, None)
            collateral = CollateralMarket(rules, amount, amount) if rules else None
            markets.append(Market(asset_id, lend, collateral, debt))
        return markets

    def config(self, at: datetime) -> GlobalConfig:
        return terms.CONFIG

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        before = timedelta.resolution
        return world_ledger(self._seed).events(unix_second(start - before), unix_second(end - before))

    def ptoken(self, at: datetime) -> Ptoken:
        """The protocol token. Its pools hold the sums of all positions' stakes."""
        state, second = self._state(at)
        bonded = state.sums("stake")
        kept = [unlock_amounts(arrangement, from_unix(second)) for arrangement in state.arrangements]
        return Ptoken(
            asset_id=terms.CONFIG.ptoken,
            emission_rate=terms.EMISSION_RATE,
            tokens_per_weight=1_000_000,
            total_issued=terms.issued(second),
            total_claimed=terms.ISSUED_AT_LAUNCH + state.sums("claimed").total(),
            total_locked=bonded.total()
            + state.sums("unbonding").total()
            + sum(amounts.claimable + amounts.locked for amounts in kept),
            total_supply=terms.TOTAL_SUPPLY,
            rewards_last_distributed=from_unix(second),
            stake_acc=fraction(state.rewards_at(second)),
            pools=tuple(replace(pool, total_bonded=bonded[str(pool.index)]) for pool in terms.POOLS),
        )

    def arrangements(self, at: datetime) -> Sequence[Arrangement]:
        """All arrangements; their terms do not depend on the seed."""
        (state, _), held = self._state(at), Key("wallet", 0, terms.CONFIG.ptoken)
        members = {people.user_address(user): amounts for user, amounts in enumerate(state.users)}
        staked = {address: sum(n for key, n in one.items() if key.of == "stake") for address, one in members.items()}
        listed = state.arrangements
        return [replace(one, staked=staked[one.address], held=members[one.address][held]) for one in listed]

    def positions(self, at: datetime) -> Iterable[Position]:
        """The positions of all users who have joined."""
        state, second = self._state(at)
        return [state.position(user, second) for user, amounts in enumerate(state.users) if amounts]

    def swaps(self, at: datetime) -> Sequence[SwapContract]:
        return people.SWAPS

    def _state(self, at: datetime) -> tuple[WorldState, int]:
        second = unix_second(at)
        return world_ledger(self._seed).at(second), second
