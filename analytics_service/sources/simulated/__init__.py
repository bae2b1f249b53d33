"""The simulated protocol: a small lending protocol that is generated from a seed, so that a new store has data to show.

A seed gives equal data on every machine, for any instant, in any order of requests: randomness comes from hashes,
arithmetic is in whole numbers, and nothing reads a clock.

Oracle prices (`universe.py`) are a function of seed, asset and second. Everything else is a **ledger**: the state
(`state.py`) has the amounts of each user, a pool for each asset that can be lent, and an agenda of turns. In a turn
(`ledger.py`), a user does what its next wish (`people.py`) says, or a liquidator repays its debt. A turn changes the
state by the protocol's rules (`terms.py`) and emits events, so both always agree. The ledger begins at the launch, on
2025-01-01, and keeps the state of each day.

- **Sums.** Receipt tokens and shares are claims on a pool, rounded in its favour, so it never owes more than it has.
  Debts are rounded down, so the sum over accounts is below the market's by less than a unit for each account.
- **Limits.** A loan or withdrawal leaves an account's debts within the allowable LTVs at the oracle's price of that
  second. Nobody borrows or redeems beyond the limit of a pool's utilization.
- **Liquidation.** Below a health of 1 (rule 6.4, account health), a liquidator repays debt up to the target health, and
  seizes collateral. Liquidators come within weeks, ignore small debts, and never make an account less healthy, so some
  accounts stay liquidatable.
- **Wallets** change by events. Initial amounts, and amounts that users lack when they pay, come over a bridge, without
  an event.

If a change of these rules generates other data from a seed, change `MADE_UP` in `store/ownership.py`, too.
"""

from analytics_service.sources.simulated.people import EMPTY_ADDRESS, RICH_ADDRESS, SWAP_CONTRACT

__all__ = ["EMPTY_ADDRESS", "RICH_ADDRESS", "SWAP_CONTRACT"]
