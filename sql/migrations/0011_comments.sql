-- Comments only: how interrupted rewrites are completed now, and plainer words. No type, codec or row changes.

ALTER TABLE publication
    COMMENT COLUMN family 'Family whose history is rewritten',
    COMMENT COLUMN version 'Version of the run that rewrites it',
    COMMENT COLUMN announced_at 'Time of the last heartbeat of the writer; after three seconds of silence other processes complete the rewrite',
    COMMENT COLUMN finished '1 once the run is listed in snapshot',
    MODIFY COMMENT 'Rewrites of history that readers already see. Until a rewrite has finished, readers answer from memory, or wait';

ALTER TABLE snapshot
    COMMENT COLUMN family 'Family of data that the run wrote, such as prices',
    COMMENT COLUMN at 'Instant of the snapshot; for an import, its newest observation',
    COMMENT COLUMN kind 'Kind of run: job (a single snapshot), backfill or import',
    COMMENT COLUMN rows 'Number of rows written',
    COMMENT COLUMN source 'Where the rows came from: the source of the jobs, or the names of the imported files',
    COMMENT COLUMN version 'Unix milliseconds at which the run began to write (below 2^42); later runs have greater ones',
    MODIFY COMMENT 'Ledger of completed runs. Rows of other tables count once their run is listed here';

ALTER TABLE snapshot_head
    COMMENT COLUMN at 'Instant of the newest snapshot of the family',
    COMMENT COLUMN version 'Greatest version of the runs that wrote to the family',
    COMMENT COLUMN runs 'Number of runs completed since this column was added. A repeated insert counts twice, so use it only to see that something has changed';

ALTER TABLE asset
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote this definition; the greatest version wins',
    COMMENT COLUMN origin_asset 'Id of the asset that a receipt or liquid-staking token represents',
    COMMENT COLUMN receipt_asset 'Id of the receipt token of a regular asset',
    MODIFY COMMENT 'Definitions of assets, one row for each change of a definition';

ALTER TABLE price
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote the row; of several rows for one asset and instant, the greatest version wins';

ALTER TABLE price_rollup
    COMMENT COLUMN rank '(observed_at - cell) * 2^42 + version of that observation; of several rows for one cell, the greatest rank wins';

ALTER TABLE lend_rate
    COMMENT COLUMN apr 'Yearly rate that lenders of the asset earn, without compounding, as a fraction: 0.05 means 5 %',
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote the row; of several rows for one asset and instant, the greatest version wins',
    MODIFY COMMENT 'Every observation of lend rates; query with FINAL, or argMax(apr, version), to see corrections applied';

ALTER TABLE lend_rate_rollup
    COMMENT COLUMN rank '(observed_at - cell) * 2^42 + version of that observation; of several rows for one cell, the greatest rank wins';

ALTER TABLE borrow_rate
    COMMENT COLUMN apr 'Yearly rate that borrowers of the asset owe, without compounding, as a fraction: 0.05 means 5 %',
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote the row; of several rows for one asset and instant, the greatest version wins',
    MODIFY COMMENT 'Every observation of borrow rates; query with FINAL, or argMax(apr, version), to see corrections applied';

ALTER TABLE borrow_rate_rollup
    COMMENT COLUMN rank '(observed_at - cell) * 2^42 + version of that observation; of several rows for one cell, the greatest rank wins';

ALTER TABLE event
    COMMENT COLUMN at 'Instant of the event, rounded up to whole seconds',
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote the row; of several rows for one event, the greatest version wins',
    MODIFY COMMENT 'Every lending event up to the newest snapshot of loans; query with FINAL, because a repeated run writes its events again';

ALTER TABLE loans_originated
    COMMENT COLUMN observed_at 'Instant of the snapshot, whole seconds',
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote the row; of several rows for one asset and instant, the greatest version wins';

ALTER TABLE loans_originated_rollup
    COMMENT COLUMN rank '(observed_at - cell) * 2^42 + version of that observation; of several rows for one cell, the greatest rank wins',
    MODIFY COMMENT 'Loans originated up to the last observation in each cell of 15 minutes, one day and one month; query with FINAL or argMax(usd, rank)';

ALTER TABLE flash_loan_volume
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote the row; of several rows for one snapshot, the greatest version wins',
    MODIFY COMMENT 'Flash loans since the first one of the protocol, at each snapshot';

ALTER TABLE market_lend
    COMMENT COLUMN interest_paid 'Interest paid to lenders so far, in denom units: what the receipts of the first snapshot had earned, plus what each later snapshot added through a higher redemption ratio; it never falls',
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote the row; of several rows for one market and snapshot, the greatest version wins';

ALTER TABLE market_collateral
    COMMENT COLUMN allowable_ltv 'Loan-to-value ratio up to which withdrawals and borrows are allowed, a fraction',
    COMMENT COLUMN liquidation_ltv 'Loan-to-value ratio from which collateral is liquidated, a fraction',
    COMMENT COLUMN collateral_cap 'Largest total that may be posted, in denom units; null means no limit',
    COMMENT COLUMN min_discount 'Smallest discount of a liquidation, a fraction',
    COMMENT COLUMN max_discount 'Largest discount of a liquidation, a fraction',
    COMMENT COLUMN shares 'Shares of the balance that accounts hold, in denom units',
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote the row; of several rows for one market and snapshot, the greatest version wins';

ALTER TABLE market_debt
    COMMENT COLUMN borrow_cap 'Largest total that may be borrowed, in denom units; null means no limit',
    COMMENT COLUMN borrow_halt_utilization 'Highest utilization at which new loans can be opened, a fraction',
    COMMENT COLUMN interest_fee 'Part of the interest that the protocol keeps, a fraction',
    COMMENT COLUMN balance 'Debt including interest, in denom units',
    COMMENT COLUMN shares 'Shares of the debt that accounts owe; each is a debt of balance / shares denom units',
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote the row; of several rows for one market and snapshot, the greatest version wins';

ALTER TABLE market_config
    COMMENT COLUMN partial_liquidation_threshold 'Account value in USD below which a liquidation is complete',
    COMMENT COLUMN staking_health_modifier 'Largest increase of health from staking, a fraction',
    COMMENT COLUMN stake_collateral_ratio 'Ratio of weighted staked protocol tokens to collateral value at which that increase is reached, a fraction',
    COMMENT COLUMN stake_flash_loan_ratio 'Required ratio of weighted staked protocol tokens to flash loan value, a fraction',
    COMMENT COLUMN dynamic_discount_width 'How far health must fall below 1 for the largest discount, a fraction',
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote the row; of several rows for one snapshot, the greatest version wins';

ALTER TABLE ptoken_state
    COMMENT COLUMN emission_rate 'Denom units emitted per year',
    COMMENT COLUMN total_issued 'Denom units issued, locked or unlocked, including all claimed and claimable rewards',
    COMMENT COLUMN total_claimed 'Denom units claimed, locked or unlocked, excluding unclaimed rewards',
    COMMENT COLUMN total_locked 'Denom units locked, including unlocked ones that are not claimed yet',
    COMMENT COLUMN total_supply 'Total supply in denom units, including locked and unissued ones',
    COMMENT COLUMN stake_acc 'Emission rate divided by total reward weight, accumulated over time',
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote the row; of several rows for one snapshot, the greatest version wins';

ALTER TABLE ptoken_pool
    COMMENT COLUMN health_weight 'Multiplier of the stake for the health of borrow accounts',
    COMMENT COLUMN flash_loan_weight 'Multiplier of the stake for flash loans',
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote the row; of several rows for one pool and snapshot, the greatest version wins';

ALTER TABLE unlock_arrangement
    COMMENT COLUMN amount 'Denom units of the whole arrangement',
    COMMENT COLUMN ends_at 'Instant at which everything is unlocked; null for a lump sum',
    COMMENT COLUMN expires_at 'Instant from which nothing more can be claimed; null means never',
    COMMENT COLUMN last_claimed_at 'Instant of the last claim; null if there was none',
    COMMENT COLUMN reclaimed_at 'Instant at which the admin reclaimed; null means never',
    COMMENT COLUMN staked 'Denom units that the beneficiary stakes at the snapshot',
    COMMENT COLUMN held 'Denom units that the beneficiary holds at the snapshot',
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote the row; of several rows for one arrangement and snapshot, the greatest version wins';

ALTER TABLE position
    COMMENT COLUMN kind 'Kind of item: collateral, debt, account (with neither), lend_held, lend_collateralized, wallet, stake, unbonding, unclaimed, claimable_rewards or claimable_unbonding',
    COMMENT COLUMN account_index 'Index of the borrow account of a collateral, debt, account or stake item; otherwise 0',
    COMMENT COLUMN asset_id 'Asset id of a collateral, debt, lend or wallet item; otherwise empty',
    COMMENT COLUMN pool 'Index of the staking pool of a stake; otherwise 0',
    COMMENT COLUMN item 'Numbers items that are equal in all preceding columns, from 0',
    COMMENT COLUMN observed_at 'Instant of the snapshot in which the item was new, changed or gone; the row is valid until the next one of the item',
    COMMENT COLUMN amount 'Shares of a collateral or debt item, receipt tokens of a lend item, otherwise denom units; 0 when closed',
    COMMENT COLUMN cascade 'Whether a stake moves to the next shorter pool by itself',
    COMMENT COLUMN until 'Instant at which a stake moves, or an unbonding unlocks',
    COMMENT COLUMN last_stake_acc 'Value of stake_acc up to which a stake has been rewarded',
    COMMENT COLUMN closed 'Whether the item no longer exists, from observed_at on',
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote the row; of several rows for one item and snapshot, the greatest version wins',
    MODIFY COMMENT 'Items of positions, one row for each change of an item. The newest row is the current state; if it is closed, the item is gone';

ALTER TABLE position_digest
    COMMENT COLUMN observed_at 'Instant of the snapshot in which the position had changed',
    COMMENT COLUMN digest 'Hash of all items of the position; 0 if it has none. Use it only to see whether the position has changed',
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote the row; the digest is valid once that run is complete',
    MODIFY COMMENT 'State of each address that was written last; used by the positions job';

ALTER TABLE position_summary
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote the row; of several rows for one snapshot, the greatest version wins',
    MODIFY COMMENT 'Number of positions at each snapshot';

ALTER TABLE swap_route
    COMMENT COLUMN source 'Denom to swap from; empty in the only row of a contract without routes',
    COMMENT COLUMN targets 'Denoms that it can be swapped to',
    COMMENT COLUMN version 'Unix milliseconds of the run that wrote the row; of several rows for one contract, denom and snapshot, the greatest version wins';
