-- The rollups that materialized views filled held the last value of each cell only. Cells have taken their place.

DROP VIEW IF EXISTS price_rollup_view SYNC;
DROP TABLE IF EXISTS price_rollup SYNC;

DROP VIEW IF EXISTS lend_rate_rollup_view SYNC;
DROP TABLE IF EXISTS lend_rate_rollup SYNC;

DROP VIEW IF EXISTS borrow_rate_rollup_view SYNC;
DROP TABLE IF EXISTS borrow_rate_rollup SYNC;

DROP VIEW IF EXISTS loans_originated_rollup_view SYNC;
DROP TABLE IF EXISTS loans_originated_rollup SYNC;
