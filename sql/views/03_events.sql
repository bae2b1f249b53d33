-- Events in standard units and USD. Those after the newest snapshot are of runs that have not ended.

CREATE OR REPLACE VIEW events{on_cluster}
(
    time DateTime64(3, 'UTC') COMMENT 'Instant of the event, whole seconds',
    kind String COMMENT 'What happened: borrow, repay, lend, redeem, flash_loan or liquidation',
    asset_id String COMMENT 'Asset id',
    symbol String COMMENT 'Symbol of the asset',
    address String COMMENT 'Address that acted, or that was liquidated',
    units Nullable(Float64) COMMENT 'Amount in standard units; null for an asset that is not defined',
    usd Nullable(Float64) COMMENT 'USD value of the amount at the time of the event; null where unknown',
    id String COMMENT 'Unique id of the event'
)
AS WITH
{functions}
SELECT
    e.at AS time,
    e.kind AS kind,
    e.asset_id AS asset_id,
    ifNull(a.symbol, '') AS symbol,
    e.address AS address,
    in_units(e.amount, a.decimals) AS units,
    -- The table has 0 for what is unknown.
    if(e.usd = 0 AND e.amount != 0, NULL, toFloat64(e.usd)) AS usd,
    e.id AS id
FROM event AS e FINAL
LEFT JOIN all_assets AS a ON a.asset_id = e.asset_id
WHERE NOT e.gone AND e.at <= (SELECT least(max(at), now() + 60) FROM snapshot_head WHERE family = 'loans')
SETTINGS join_use_nulls = 1
COMMENT 'Every event of the markets';

CREATE OR REPLACE VIEW loan{on_cluster}
(
    time DateTime64(3, 'UTC') COMMENT 'Instant of the loan, whole seconds',
    asset_id String COMMENT 'Asset id',
    symbol String COMMENT 'Symbol of the asset',
    address String COMMENT 'Address of the borrower',
    units Nullable(Float64) COMMENT 'Amount in standard units; null for an asset that is not defined',
    usd Nullable(Float64) COMMENT 'USD value of the amount at the time of the loan; null where unknown',
    id String COMMENT 'Unique id of the event'
)
AS SELECT time, asset_id, symbol, address, units, usd, id
FROM events
WHERE kind = 'borrow'
COMMENT 'Every loan, without flash loans';

CREATE OR REPLACE VIEW account_events{on_cluster}
(
    address String COMMENT 'Address that acted, or that was liquidated, in lower case',
    time DateTime64(3, 'UTC') COMMENT 'Instant of the event, whole seconds',
    action String COMMENT 'What the address did, such as borrow, deposit_collateral or send',
    leg String COMMENT 'Of a liquidation: debt (the debt repaid) or collateral (the collateral taken); else empty',
    asset_id String COMMENT 'Asset id',
    symbol String COMMENT 'Symbol of the asset',
    units Nullable(Float64) COMMENT 'Amount in standard units; null for an action that moves nothing, or an asset that is not defined',
    price Nullable(Float64) COMMENT 'USD per standard unit at the time of the event; null where unknown',
    usd Nullable(Float64) COMMENT 'USD value of the amount at the time of the event; null where unknown',
    account_index Nullable(UInt32) COMMENT 'Index of the borrow account, for actions that concern one; else null',
    contract String COMMENT 'Address of the contract that carried the action out',
    destination Nullable(String) COMMENT 'Address that a send went to; else null',
    tx_hash String COMMENT 'Hash of the transaction; both legs of a liquidation have the same',
    id String COMMENT 'Version 5 UUID of the event'
)
AS WITH
{functions}
SELECT
    e.address AS address,
    e.at AS time,
    e.action AS action,
    e.leg AS leg,
    e.asset_id AS asset_id,
    ifNull(a.symbol, '') AS symbol,
    in_units(e.amount, a.decimals) AS units,
    toFloat64(e.price) AS price,
    toFloat64(e.usd) AS usd,
    e.account_index AS account_index,
    e.contract AS contract,
    e.destination AS destination,
    e.tx_hash AS tx_hash,
    e.uuid AS id
FROM account_event AS e FINAL
LEFT JOIN all_assets AS a ON a.asset_id = e.asset_id
WHERE NOT e.gone AND e.at <= (SELECT least(max(at), now() + 60) FROM snapshot_head WHERE family = 'loans')
SETTINGS join_use_nulls = 1
COMMENT 'Every event of every address';
