-- The views that `analytics-service up --source sql:research_mine` reads, with all columns, over tables with sample rows.
--
-- Run it unchanged, then replace the sample tables by your own. On a ClickHouse server of your own:
--     clickhouse-client --queries-file source-views.sql
-- On the embedded server, as the service's own user. `analytics-service up --source none` starts it in the data folder
-- DATA, and prints PORT:
--     sed 's/;$/\x0/' source-views.sql | while IFS= read -rd '' statement; do
--         curl "http://127.0.0.1:PORT" --user "analytics:$(cat DATA/password)" --data-binary "$statement"
--     done
-- Afterwards, and after each change of the views:
--     analytics-service source check sql:research_mine
--
-- What holds for all views
--   * Only source_asset and source_price are required. Drop other views that you have no data for.
--   * A view may omit columns that have a default, and rows may have NULL there. It must have no other columns.
--   * A table with the name and columns of a view works, too.
--   * The state at an instant is the newest rows whose observed_at is at or before it. Keep old rows, because backfills
--     need them. A view without observed_at has the same rows at every instant; source_price, source_market and
--     source_position then have no past.
--   * Numbers are Decimal, whole numbers or String. Floats are refused, because they are not exact; cast them in the view:
--     toDecimal128(toString(price), 18).
--   * Amounts are in denom units: 10^decimals of them make one standard unit. Rates and ratios are fractions: 0.05 is 5 %.
--   * Asset ids are native;<denom> or token;<address>. Addresses are bech32, or 0x and 40 hex digits.
--   * Each query reads the rows up to an instant, within ANALYTICS_QUERY_TIMEOUT. Omit rows that you do not need.

CREATE DATABASE IF NOT EXISTS research_mine;

-- Sample tables. Other engines of ClickHouse fetch data from elsewhere. They need a server of your own, because the
-- embedded server cannot connect to others. For example:
--   ENGINE = PostgreSQL('postgres:5432', 'warehouse', 'price_feed', 'user', 'password')
--   ENGINE = S3('https://bucket.s3.amazonaws.com/prices/*.parquet')
--   ENGINE = URL('https://prices.example/history.csv', CSVWithNames)
--   ENGINE = Kafka('kafka:9092', 'prices', 'analytics', 'JSONEachRow'), and a materialized view that moves its rows to a
--   MergeTree table: CREATE MATERIALIZED VIEW research_mine.fill TO research_mine.price_feed AS SELECT * FROM ...
CREATE TABLE IF NOT EXISTS research_mine.token
(
    denom String,
    symbol String,
    decimals UInt8
)
ENGINE = MergeTree
ORDER BY denom;

CREATE TABLE IF NOT EXISTS research_mine.price_feed
(
    symbol LowCardinality(String),
    seen DateTime64(3, 'UTC'),
    price Decimal(38, 18)
)
ENGINE = MergeTree
ORDER BY (seen, symbol);

INSERT INTO research_mine.token VALUES ('uatom', 'ATOM', 6), ('uusdt', 'USDT', 6);

INSERT INTO research_mine.price_feed VALUES
    ('ATOM', now64(3, 'UTC') - INTERVAL 1 DAY, 10.25), ('USDT', now64(3, 'UTC') - INTERVAL 1 DAY, 1),
    ('ATOM', now64(3, 'UTC') - INTERVAL 1 MINUTE, 10.5), ('USDT', now64(3, 'UTC') - INTERVAL 1 MINUTE, 0.9999);

CREATE OR REPLACE VIEW research_mine.source_asset
(
    @source_asset@
)
AS SELECT
    concat('native;', denom) AS asset_id,
    symbol,
    decimals,
    symbol AS name,
    denom AS symbol_denom,
    decimals AS decimals_display,
    'regular' AS kind,
    NULL AS origin_asset,
    NULL AS receipt_asset
FROM research_mine.token
COMMENT 'Every asset';

CREATE OR REPLACE VIEW research_mine.source_price
(
    @source_price@
)
AS SELECT concat('native;', denom) AS asset_id, seen AS observed_at, price AS usd
FROM research_mine.price_feed
INNER JOIN research_mine.token USING (symbol)
COMMENT 'Prices; the newest of each asset counts';

CREATE TABLE IF NOT EXISTS research_mine.source_market
(
    @source_market@
)
ENGINE = MergeTree
ORDER BY (observed_at, asset_id)
COMMENT 'Lend, collateral and debt markets; the newest row of each asset counts. Without this view there are no markets';

INSERT INTO research_mine.source_market
    (asset_id, observed_at, lend_principal, lend_apr, collateral_balance, allowable_ltv, liquidation_ltv, debt_balance, debt_apr)
VALUES
    ('native;uatom', now('UTC') - INTERVAL 1 DAY, NULL, NULL, 250000000, 0.7, 0.75, NULL, NULL),
    ('native;uusdt', now('UTC') - INTERVAL 1 DAY, 1000000000, 0.04, NULL, NULL, NULL, 500000000, 0.09);

CREATE TABLE IF NOT EXISTS research_mine.source_config
(
    @source_config@
)
ENGINE = MergeTree
ORDER BY observed_at
COMMENT 'Rules of all borrowing; the newest row counts';

INSERT INTO research_mine.source_config
    (observed_at, time_window_nanos, partial_liquidation_threshold, target_liquidation_health, liquidation_fee, dynamic_discount_width, hnative, ptoken)
VALUES
    (now('UTC') - INTERVAL 1 DAY, 60000000000, 1000, 1.05, 0.01, 0.2, 'native;uatom', 'native;uatom');

-- Actions: borrow_flash_loan, return_flash_loan, create_token_unlock, reclaim_token_unlock, liquidate, borrow, return, lend,
-- redeem, deposit_collateral, withdraw_collateral, claim_war_chest, bond, unbond, claim_unbonded, claim_token_unlock,
-- claim_rewards, cascade and send.
CREATE TABLE IF NOT EXISTS research_mine.source_event
(
    @source_event@
)
ENGINE = MergeTree
ORDER BY (at, id)
COMMENT 'What addresses did. Loans originated, liquidations and the histories of addresses are made from it. Those of the last hour are read again every five minutes: what came late, moved or went is put right. Ids are never used again';

INSERT INTO research_mine.source_event (id, at, action, address, asset_id, amount, usd, price, account_index, tx_hash) VALUES
    ('1', now('UTC') - INTERVAL 1 DAY, 'borrow', '0x00000000000000000000000000000000000000a1', 'native;uusdt', 500000000, 500, 1, 0, 'A1');

CREATE OR REPLACE VIEW research_mine.source_complete
(
    @source_complete@
)
AS SELECT now('UTC') - INTERVAL 1 MINUTE AS complete_until
COMMENT 'How far the events go, where an indexer may lag by more than an hour: later ones are read again at each snapshot. One row';

CREATE TABLE IF NOT EXISTS research_mine.source_position
(
    @source_position@
)
ENGINE = MergeTree
ORDER BY (observed_at, address)
COMMENT 'What each address holds, owes, lends and stakes, a row for each item. Insert the rows of an instant at once';

INSERT INTO research_mine.source_position (observed_at, address, kind, asset_id, amount) VALUES
    (now('UTC') - INTERVAL 1 DAY, '0x00000000000000000000000000000000000000a1', 'collateral', 'native;uatom', 250000000),
    (now('UTC') - INTERVAL 1 DAY, '0x00000000000000000000000000000000000000a1', 'debt', 'native;uusdt', 500000000),
    (now('UTC') - INTERVAL 1 DAY, '0x00000000000000000000000000000000000000b2', 'lend_held', 'native;uusdt', 1000000000);

CREATE TABLE IF NOT EXISTS research_mine.source_ptoken
(
    @source_ptoken@
)
ENGINE = MergeTree
ORDER BY observed_at
COMMENT 'The protocol token; the newest row counts';

INSERT INTO research_mine.source_ptoken (observed_at, asset_id, total_supply, total_issued) VALUES
    (now('UTC') - INTERVAL 1 DAY, 'native;uatom', 1000000000000, 400000000000);

CREATE TABLE IF NOT EXISTS research_mine.source_pool
(
    @source_pool@
)
ENGINE = MergeTree
ORDER BY (observed_at, pool)
COMMENT 'Staking pools of the protocol token; they need source_ptoken';

INSERT INTO research_mine.source_pool (observed_at, pool, duration, total_bonded) VALUES (now('UTC') - INTERVAL 1 DAY, 0, 1209600, 5000000);

CREATE TABLE IF NOT EXISTS research_mine.source_arrangement
(
    @source_arrangement@
)
ENGINE = MergeTree
ORDER BY (observed_at, address, arrangement)
COMMENT 'Unlock arrangements of the protocol token';

INSERT INTO research_mine.source_arrangement (observed_at, address, arrangement, member_class, kind, amount, begins_at, ends_at) VALUES
    (now('UTC') - INTERVAL 1 DAY, '0x00000000000000000000000000000000000000b2', 0, 'team', 'linear', 7000000, '2026-01-01 00:00:00', '2028-01-01 00:00:00');

CREATE TABLE IF NOT EXISTS research_mine.source_route
(
    @source_route@
)
ENGINE = MergeTree
ORDER BY (observed_at, contract, source)
COMMENT 'Routes of swap contracts';

INSERT INTO research_mine.source_route (observed_at, contract, source, targets) VALUES
    (now('UTC') - INTERVAL 1 DAY, '0x00000000000000000000000000000000000000c3', 'uatom', ['uusdt']);
