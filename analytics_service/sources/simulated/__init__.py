"""The simulated protocol.

A small lending protocol that is made up from a seed, so that a new store has something to show. The same seed gives the
same data on every machine, for any instant, in whatever order it is asked: all randomness is drawn by hashing, all
arithmetic is in whole numbers, and nothing reads a clock.

Oracle prices (`universe.py`) are a function of seed, asset and second. Everything else is a **ledger**: the state
(`state.py`) holds the amounts of each user, a pool for each asset that can be lent, and an agenda of what is due next.
`ledger.py` takes one turn after the other: a user does what it wishes (`people.py`), or a liquidator looks after it. A
turn changes the state by the protocol's rules (`terms.py`) and tells it as events, so both always agree. The fold
begins at the launch, on 2025-01-01, takes a second or two up to the present, and goes on from checkpoints.

- **Interest.** A pool's rates follow from its utilization at its last event, and hold until the next. Interest is rate
  times time times what is owed. Lenders get it less the fee, which is kept for the war chest.
- **Rounding.** Receipt tokens and shares are claims on a pool, and rounded in its favour, so it never owes more than it
  has. A debt is shown rounded down, so the sum over accounts is below the market's by less than a unit an account.
- **Limits.** A loan or withdrawal leaves an account's debts within the allowable LTVs at the oracle's price of that
  second. Nobody borrows or redeems beyond the limit of a pool's utilization.
- **Liquidation.** Below a health of 1 (rule 6.4), a liquidator repays debt up to the target health, or all of it below
  the partial threshold, and takes collateral of the same value and the discount. Liquidators come within days, leave
  debts below 500 USD alone, want no receipt tokens, and never make an account less healthy: so some stay liquidatable.
- **Wallets** change by events. What users bring along, or lack when they pay, comes over a bridge, which is no event.
- **Transactions** have a second of their own. The events of one, such as the legs of a liquidation, share it.

When a change of these rules makes other data from the same seed, `_MADE_UP` in `store/ownership.py` must change, too:
stores of the simulation before are then refused in one line.
"""

from analytics_service.sources.simulated.people import EMPTY_ADDRESS, RICH_ADDRESS, SWAP_CONTRACT

__all__ = ["EMPTY_ADDRESS", "RICH_ADDRESS", "SWAP_CONTRACT"]
