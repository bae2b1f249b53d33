"""The simulated protocol.

A small lending protocol that is made up from a seed, so that a new store has something to show. The same seed gives the
same data on every machine, for any instant, in whatever order it is asked: all randomness is drawn by hashing, all
arithmetic is in whole numbers, and nothing reads a clock.

Oracle prices (`universe.py`) are a function of seed, asset and second. Everything else is a **ledger**: the state
(`state.py`) holds the amounts of each user, a pool for each asset that can be lent, and an agenda. `ledger.py` takes
one turn after the other: a user goes on to its next wish (`people.py`), or a liquidator looks after its account. A turn
changes the state by the protocol's rules (`terms.py`) and tells it as events, so both always agree. The fold begins at
the launch, on 2025-01-01, and keeps the state of each day.

- **Sums.** Receipt tokens and shares are claims on a pool, rounded in its favour, so it never owes more than it has. A
  debt is shown rounded down, so the sum over accounts is below the market's by less than a unit an account.
- **Limits.** A loan or withdrawal leaves an account's debts within the allowable LTVs at the oracle's price of that
  second. Nobody borrows or redeems beyond the limit of a pool's utilization.
- **Liquidation.** Below a health of 1 (rule 6.4), a liquidator repays debt up to the target health, and takes
  collateral. Liquidators come within weeks, leave small debts alone, and never make an account less healthy: so some
  stay liquidatable.
- **Wallets** change by events. What users bring along, or lack when they pay, comes over a bridge, which is no event.

When a change of these rules makes other data from the same seed, `MADE_UP` in `store/ownership.py` must change, too.
"""

from analytics_service.sources.simulated.people import EMPTY_ADDRESS, RICH_ADDRESS, SWAP_CONTRACT

__all__ = ["EMPTY_ADDRESS", "RICH_ADDRESS", "SWAP_CONTRACT"]
