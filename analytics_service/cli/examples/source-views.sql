-- The views that `analytics-service up --source sql:research_mine` reads, with all columns, over tables with sample rows.
--
-- Run it as it is, then put your own tables in the place of the samples. On a ClickHouse server of your own:
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
--   * Only source_asset and source_price are required. Drop the others that you have no data for.
--   * A view may lack each column with a default, and so may a row, with NULL. It may have no further columns.
--   * A table of the same name and columns does as well as a view.
--   * The state at an instant is that of the newest rows whose observed_at is at or before it. So keep old rows: snapshots
--     of the past, and backfills, are made from them. A view without observed_at has the same rows at every instant.
--   * Numbers are Decimal, whole numbers or String. Floats are refused, because they are not exact; cast them in the view:
--     toDecimal128(toString(price), 18).
--   * Amounts are in denom units: 10^decimals of them make one standard unit. Rates and ratios are fractions: 0.05 is 5 %.
--   * Asset ids are native;<denom> or token;<address>. Addresses are bech32, or 0x and 40 hex digits.
--   * Each query reads the rows up to an instant, within ANALYTICS_QUERY_TIMEOUT. Leave out what is older than you need.

CREATE DATABASE IF NOT EXISTS research_mine;

-- Tables as you may have them. Other engines of ClickHouse fetch the data from elsewhere. They need a server of your own,
-- because the embedded one reaches no other. For example:
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
    asset_id String COMMENT 'Asset id. Required',
    symbol String COMMENT 'Symbol of a standard unit. Required',
    decimals UInt8 COMMENT 'Decimal places between denom and standard units. Required',
    name String COMMENT 'Full name. Default: the symbol',
    symbol_denom String COMMENT 'Symbol of a denom unit. Default: the id after the semicolon',
    decimals_display UInt8 COMMENT 'Decimal places shown in texts. Default: decimals, but at most 6',
    kind String COMMENT 'regular (default), protocol_receipt_token or liquid_staking_token',
    origin_asset Nullable(String) COMMENT 'Id of the asset that a receipt or liquid-staking token represents. Default: none',
    receipt_asset Nullable(String) COMMENT 'Id of the receipt token of an asset. Default: the one whose origin_asset it is'
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
    asset_id String COMMENT 'Asset id. Required',
    observed_at DateTime64(3, 'UTC') COMMENT 'Instant at which the price was observed. Required',
    usd Decimal(38, 18) COMMENT 'USD per standard unit. Required'
)
AS SELECT concat('native;', denom) AS asset_id, seen AS observed_at, price AS usd
FROM research_mine.price_feed
INNER JOIN research_mine.token USING (symbol)
COMMENT 'Prices; the newest of each asset counts';

CREATE TABLE IF NOT EXISTS research_mine.source_market
(
    asset_id String COMMENT 'Asset id. Required',
    observed_at DateTime('UTC') COMMENT 'Instant from which the row holds, until the next one of the asset',
    lend_principal Nullable(UInt256) COMMENT 'Amount owed to lenders. Null: the asset cannot be lent',
    lend_receipt_supply Nullable(UInt256) COMMENT 'Receipt tokens outstanding. Default: lend_principal',
    lend_apr Nullable(Decimal(38, 18)) COMMENT 'Yearly rate that lenders earn, without compounding. Required with lend_principal',
    collateral_balance Nullable(UInt256) COMMENT 'Collateral posted. Null: the asset is no collateral',
    collateral_shares Nullable(UInt256) COMMENT 'Shares of the balance that accounts hold. Default: collateral_balance',
    collateral_enabled Bool DEFAULT true COMMENT 'Whether the asset counts as collateral. Default: true',
    collateral_cap Nullable(UInt256) COMMENT 'Largest total that may be posted. Default: no limit',
    allowable_ltv Nullable(Decimal(38, 18)) COMMENT 'Loan-to-value ratio up to which borrowing is allowed. Required with collateral_balance',
    liquidation_ltv Nullable(Decimal(38, 18)) COMMENT 'Loan-to-value ratio from which collateral is liquidated. Required with collateral_balance',
    min_discount Decimal(38, 18) COMMENT 'Smallest discount of a liquidation. Default: 0',
    max_discount Decimal(38, 18) COMMENT 'Largest discount of a liquidation. Default: 0',
    debt_balance Nullable(UInt256) COMMENT 'Debt including interest. Null: the asset cannot be borrowed',
    debt_shares Nullable(UInt256) COMMENT 'Shares of the debt that accounts owe. Default: debt_balance',
    debt_apr Nullable(Decimal(38, 18)) COMMENT 'Yearly rate that borrowers owe, without compounding. Required with debt_balance',
    debt_enabled Bool DEFAULT true COMMENT 'Whether the asset can be borrowed now. Default: true',
    borrow_cap Nullable(UInt256) COMMENT 'Largest total that may be borrowed. Default: no limit',
    borrow_halt_utilization Decimal(38, 18) DEFAULT 1 COMMENT 'Highest utilization at which new loans can be opened. Default: 1',
    interest_fee Decimal(38, 18) COMMENT 'Part of the interest that the protocol keeps. Default: 0',
    time_last_distributed_interest Nullable(DateTime('UTC')) COMMENT 'Instant at which interest was last added to the debt. Default: observed_at',
    utilization_accumulator Decimal(38, 18) COMMENT 'Tracker of the utilization over time. Default: 0'
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
    observed_at DateTime('UTC') COMMENT 'Instant from which the row holds, until the next one',
    time_window_nanos UInt64 COMMENT 'Nanoseconds for which an oracle price is valid. Default: 0',
    partial_liquidation_threshold Decimal(38, 18) COMMENT 'Account value in USD below which a liquidation is complete. Default: 0',
    target_liquidation_health Decimal(38, 18) DEFAULT 1 COMMENT 'Health that a liquidation restores. Default: 1',
    liquidation_fee Decimal(38, 18) COMMENT 'Part of a liquidation that the protocol keeps. Default: 0',
    flash_loans_enabled Bool COMMENT 'Whether flash loans are given. Default: false',
    flash_loan_fee Decimal(38, 18) COMMENT 'Fee of a flash loan. Default: 0',
    staking_health_modifier Decimal(38, 18) COMMENT 'Largest increase of health from staking. Default: 0',
    stake_collateral_ratio Decimal(38, 18) COMMENT 'Ratio of weighted stakes to collateral value at which it is reached. Default: 0',
    stake_flash_loan_ratio Decimal(38, 18) COMMENT 'Required ratio of weighted stakes to flash loan value. Default: 0',
    dynamic_discount_width Decimal(38, 18) COMMENT 'How far health must fall below 1 for the largest discount. Default: 0',
    hnative String DEFAULT 'native;none' COMMENT 'Asset id of an asset that the protocol designates. Default: native;none',
    ptoken String DEFAULT 'native;none' COMMENT 'Asset id of the protocol token. Default: native;none'
)
ENGINE = MergeTree
ORDER BY observed_at
COMMENT 'Rules of all borrowing; the newest row counts';

INSERT INTO research_mine.source_config VALUES
    (now('UTC') - INTERVAL 1 DAY, 60000000000, 1000, 1.05, 0.01, false, 0, 0, 0, 0, 0.2, 'native;uatom', 'native;uatom');

CREATE TABLE IF NOT EXISTS research_mine.source_event
(
    id String COMMENT 'Identifies the event, and is never used again. Required',
    at DateTime64(3, 'UTC') COMMENT 'Instant of the event. Required. An event that arrives after the snapshot of its instant is never read',
    action String COMMENT 'borrow_flash_loan, return_flash_loan, create_token_unlock, reclaim_token_unlock, liquidate, borrow, return, lend, redeem, deposit_collateral, withdraw_collateral, claim_war_chest, bond, unbond, claim_unbonded, claim_token_unlock, claim_rewards, cascade or send. Required',
    address String COMMENT 'Address that acted, or that was liquidated. Required',
    asset_id String COMMENT 'Asset id. Required',
    amount Nullable(UInt256) COMMENT 'Amount. Null: the action moves nothing',
    usd Nullable(Decimal(38, 18)) COMMENT 'USD value of the amount at the time. Null: unknown, and no part of loans and liquidations',
    price Nullable(Decimal(38, 18)) COMMENT 'USD per standard unit at the time. Default: unknown',
    account_index Nullable(UInt32) COMMENT 'Index of the borrow account. Default: none',
    contract String COMMENT 'Address of the contract that carried the action out. Default: empty',
    destination Nullable(String) COMMENT 'Address that a send went to. Default: none',
    tx_hash String COMMENT 'Hash of the transaction; both legs of a liquidation have the same. Default: empty',
    leg Nullable(String) COMMENT 'Of a liquidation: debt (the debt repaid) or collateral (the collateral taken). Default: none'
)
ENGINE = MergeTree
ORDER BY (at, id)
COMMENT 'What addresses did. Loans originated, liquidations and the histories of addresses are made from it';

INSERT INTO research_mine.source_event (id, at, action, address, asset_id, amount, usd, price, account_index, tx_hash) VALUES
    ('1', now('UTC') - INTERVAL 1 DAY, 'borrow', '0x00000000000000000000000000000000000000a1', 'native;uusdt', 500000000, 500, 1, 0, 'A1');

CREATE TABLE IF NOT EXISTS research_mine.source_position
(
    observed_at DateTime('UTC') COMMENT 'Instant of the snapshot; the newest counts, with all its rows. Insert them at once',
    address String COMMENT 'Address of the user. Required',
    kind String COMMENT 'collateral, debt, account (with neither), lend_held, lend_collateralized, wallet, stake, unbonding, unclaimed, claimable_rewards or claimable_unbonding. Required',
    account_index UInt32 COMMENT 'Index of the borrow account of a collateral, debt, account or stake. Default: 0',
    asset_id String COMMENT 'Asset id of a collateral, debt, lend or wallet item. Default: empty',
    pool UInt32 COMMENT 'Index of the staking pool of a stake. Default: 0',
    amount UInt256 COMMENT 'Shares of a collateral or debt, receipt tokens of a lend item, otherwise denom units. Default: 0',
    cascade Bool COMMENT 'Whether a stake moves to the next shorter pool by itself. Default: false',
    until Nullable(DateTime('UTC')) COMMENT 'Instant at which a stake moves, or an unbonding unlocks. Required for an unbonding',
    last_stake_acc Decimal(38, 18) COMMENT 'Value of stake_acc up to which a stake has been rewarded. Default: 0'
)
ENGINE = MergeTree
ORDER BY (observed_at, address)
COMMENT 'What each address holds, owes, lends and stakes, a row for each item';

INSERT INTO research_mine.source_position (observed_at, address, kind, asset_id, amount) VALUES
    (now('UTC') - INTERVAL 1 DAY, '0x00000000000000000000000000000000000000a1', 'collateral', 'native;uatom', 250000000),
    (now('UTC') - INTERVAL 1 DAY, '0x00000000000000000000000000000000000000a1', 'debt', 'native;uusdt', 500000000),
    (now('UTC') - INTERVAL 1 DAY, '0x00000000000000000000000000000000000000b2', 'lend_held', 'native;uusdt', 1000000000);

CREATE TABLE IF NOT EXISTS research_mine.source_ptoken
(
    observed_at DateTime('UTC') COMMENT 'Instant from which the row holds, until the next one',
    asset_id String COMMENT 'Asset id of the protocol token. Required',
    total_supply UInt256 COMMENT 'Total supply, including what is locked or not issued. Required',
    total_issued UInt256 COMMENT 'Issued, including all claimed and claimable rewards. Default: 0',
    total_claimed UInt256 COMMENT 'Claimed, excluding unclaimed rewards. Default: 0',
    total_locked UInt256 COMMENT 'Locked, including what is unlocked but not claimed. Default: 0',
    emission_rate UInt256 COMMENT 'Emitted per year. Default: 0',
    tokens_per_weight UInt256 COMMENT 'Factor from weight to tokens. Default: 0',
    rewards_last_distributed Nullable(DateTime('UTC')) COMMENT 'Instant at which staking rewards were last distributed. Default: observed_at',
    stake_acc Decimal(38, 18) COMMENT 'Emission rate divided by total reward weight, accumulated over time. Default: 0'
)
ENGINE = MergeTree
ORDER BY observed_at
COMMENT 'The protocol token; the newest row counts';

INSERT INTO research_mine.source_ptoken (observed_at, asset_id, total_supply, total_issued) VALUES
    (now('UTC') - INTERVAL 1 DAY, 'native;uatom', 1000000000000, 400000000000);

CREATE TABLE IF NOT EXISTS research_mine.source_pool
(
    observed_at DateTime('UTC') COMMENT 'Instant of the snapshot; the newest counts, with all its rows',
    pool UInt32 COMMENT 'Index of the staking pool. Required',
    duration UInt64 COMMENT 'Seconds of lock-up. Required',
    reward_weight Decimal(38, 18) DEFAULT 1 COMMENT 'Multiplier of rewards. Default: 1',
    gov_weight Decimal(38, 18) DEFAULT 1 COMMENT 'Multiplier of votes. Default: 1',
    health_weight Decimal(38, 18) DEFAULT 1 COMMENT 'Multiplier for the health of borrow accounts. Default: 1',
    flash_loan_weight Decimal(38, 18) DEFAULT 1 COMMENT 'Multiplier for flash loans. Default: 1',
    total_bonded UInt256 COMMENT 'Amount staked to the pool. Default: 0'
)
ENGINE = MergeTree
ORDER BY (observed_at, pool)
COMMENT 'Staking pools of the protocol token; they need source_ptoken';

INSERT INTO research_mine.source_pool VALUES (now('UTC') - INTERVAL 1 DAY, 0, 1209600, 1, 1, 1, 1, 5000000);

CREATE TABLE IF NOT EXISTS research_mine.source_arrangement
(
    observed_at DateTime('UTC') COMMENT 'Instant of the snapshot; the newest counts, with all its rows',
    address String COMMENT 'Address of the beneficiary. Required',
    arrangement UInt32 COMMENT 'Index among the arrangements of the address. Required',
    member_class String COMMENT 'Group of the beneficiary: team, advisor or investor. Required',
    kind String COMMENT 'Schedule: linear (from begins_at to ends_at) or lump_sum (all at begins_at). Required',
    amount UInt256 COMMENT 'The whole arrangement. Required',
    claimed UInt256 COMMENT 'Claimed so far. Default: 0',
    begins_at DateTime('UTC') COMMENT 'Instant at which unlocking begins. Required',
    ends_at Nullable(DateTime('UTC')) COMMENT 'Instant at which everything is unlocked. Required for a linear schedule',
    expires_at Nullable(DateTime('UTC')) COMMENT 'Instant from which nothing more can be claimed. Default: never',
    last_claimed_at Nullable(DateTime('UTC')) COMMENT 'Instant of the last claim. Default: none',
    admin String COMMENT 'Address that may reclaim what is locked. Default: empty',
    reclaimed_at Nullable(DateTime('UTC')) COMMENT 'Instant at which the admin reclaimed. Default: never',
    staked UInt256 COMMENT 'What the beneficiary stakes. Default: 0',
    held UInt256 COMMENT 'What the beneficiary holds. Default: 0'
)
ENGINE = MergeTree
ORDER BY (observed_at, address, arrangement)
COMMENT 'Unlock arrangements of the protocol token';

INSERT INTO research_mine.source_arrangement (observed_at, address, arrangement, member_class, kind, amount, begins_at, ends_at) VALUES
    (now('UTC') - INTERVAL 1 DAY, '0x00000000000000000000000000000000000000b2', 0, 'team', 'linear', 7000000, '2026-01-01 00:00:00', '2028-01-01 00:00:00');

CREATE TABLE IF NOT EXISTS research_mine.source_route
(
    observed_at DateTime('UTC') COMMENT 'Instant of the snapshot; the newest counts, with all its rows',
    contract String COMMENT 'Address of the swap contract. Required',
    source String COMMENT 'Denom to swap from; empty in the only row of a contract without routes. Required',
    targets Array(String) COMMENT 'Denoms that it can be swapped to. Required'
)
ENGINE = MergeTree
ORDER BY (observed_at, contract, source)
COMMENT 'Routes of swap contracts';

INSERT INTO research_mine.source_route VALUES
    (now('UTC') - INTERVAL 1 DAY, '0x00000000000000000000000000000000000000c3', 'uatom', ['uusdt']);
