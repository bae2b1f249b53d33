-- Announcements of runs that append outlive the day: a run that nobody could complete for so long is still known then.
-- The scheduler drops those that have finished. REMOVE TTL fails where there is none, so it follows a MODIFY.

ALTER TABLE append_run MODIFY TTL announced_at + INTERVAL 1 DAY SETTINGS materialize_ttl_after_modify = 0;

ALTER TABLE append_run REMOVE TTL;

ALTER TABLE append_run
    COMMENT COLUMN announced_at 'Time of the last heartbeat of the writer; after three seconds of silence other processes complete the run',
    COMMENT COLUMN finished '1 once the run is listed in snapshot',
    MODIFY COMMENT 'Runs that add snapshots to the end of a family, for a day after they have finished; while one is unfinished, the next ones wait';

-- Plainer and more exact comments. A cell of a period that has not ended is there too, where a run has ended within it.

ALTER TABLE position_digest
    MODIFY COMMENT 'Newest stored state of each address, as a hash; used by the positions job';

ALTER TABLE price_cell MODIFY COMMENT 'Open, high, low and close of the prices in cells of 15 minutes, a UTC day and a UTC month; leave out the period that has not ended, and query with FINAL';

ALTER TABLE lend_rate_cell MODIFY COMMENT 'Open, high, low and close of the lend rates in cells of 15 minutes, a UTC day and a UTC month; leave out the period that has not ended, and query with FINAL';

ALTER TABLE borrow_rate_cell MODIFY COMMENT 'Open, high, low and close of the borrow rates in cells of 15 minutes, a UTC day and a UTC month; leave out the period that has not ended, and query with FINAL';

ALTER TABLE loans_originated_cell MODIFY COMMENT 'Open, high, low and close of the loans originated in cells of 15 minutes, a UTC day and a UTC month; leave out the period that has not ended, and query with FINAL';

ALTER TABLE liquidations_cell MODIFY COMMENT 'Open, high, low and close of the liquidations so far in cells of 15 minutes, a UTC day and a UTC month; leave out the period that has not ended, and query with FINAL';

ALTER TABLE tvl_cell MODIFY COMMENT 'Open, high, low and close of the total value locked in cells of 15 minutes, a UTC day and a UTC month; leave out the period that has not ended, and query with FINAL';

ALTER TABLE net_tvl_cell MODIFY COMMENT 'Open, high, low and close of the net total value locked in cells of 15 minutes, a UTC day and a UTC month; leave out the period that has not ended, and query with FINAL';

ALTER TABLE deposit_value_cell MODIFY COMMENT 'Open, high, low and close of the value of deposits in cells of 15 minutes, a UTC day and a UTC month; leave out the period that has not ended, and query with FINAL';

ALTER TABLE collateral_value_cell MODIFY COMMENT 'Open, high, low and close of the value of collateral in cells of 15 minutes, a UTC day and a UTC month; leave out the period that has not ended, and query with FINAL';

ALTER TABLE debt_value_cell MODIFY COMMENT 'Open, high, low and close of the value of debt in cells of 15 minutes, a UTC day and a UTC month; leave out the period that has not ended, and query with FINAL';

ALTER TABLE utilization_cell MODIFY COMMENT 'Open, high, low and close of the utilization of deposits in cells of 15 minutes, a UTC day and a UTC month; leave out the period that has not ended, and query with FINAL';
