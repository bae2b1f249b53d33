-- Events in standard units and USD. Events after the newest snapshot are of incomplete commits.

CREATE OR REPLACE VIEW events{on_cluster}
(
    time DateTime64(3, 'UTC') COMMENT 'Instant of the event, in whole seconds',
    action String COMMENT 'Action of the address, in the words of the API, such as borrow, return or send. A flash loan is two events, borrow_flash_loan and return_flash_loan, and neither is a borrow or return. liquidate repays debt, too',
    leg String COMMENT 'Leg of a liquidation, which is two events with one tx_hash: debt (repaid, also if the source names no leg) or collateral (seized). Sum one of them. Empty for other actions',
    asset_id String COMMENT 'Asset id',
    symbol String COMMENT 'Symbol of the asset',
    address String COMMENT 'Address that acted, or that was liquidated, in lower case',
    account_index Nullable(UInt32) COMMENT 'Index of the borrow account. Null for actions without one',
    units Nullable(Float64) COMMENT 'Amount in standard units. Null if the action moves nothing or the asset is not defined',
    amount_denom Nullable(String) COMMENT 'The exact amount, in denom units. Calculate with toUInt256(amount_denom)',
    price Nullable(Float64) COMMENT 'USD per standard unit at the time of the event. Null if unknown',
    price_exact Nullable(Decimal(38, 18)) COMMENT 'The exact price. Convert it with toDecimal256 before you multiply or divide',
    usd Nullable(Float64) COMMENT 'USD value of the amount at the time of the event. Null if unknown, so sums ignore it',
    usd_exact Nullable(Decimal(38, 18)) COMMENT 'The exact value. Convert it with toDecimal256 before you multiply or divide',
    contract String COMMENT 'Address of the contract that carried the action out',
    destination Nullable(String) COMMENT 'Recipient of a send. Null for other actions',
    tx_hash String COMMENT 'Hash of the transaction. Both legs of a liquidation have the same hash',
    id String COMMENT 'UUID of the event: event_uuid in the API'
)
AS WITH
{functions}
SELECT
    e.at AS time,
    e.action AS action,
    if(e.action = 'liquidate' AND e.leg = '', 'debt', e.leg) AS leg,
    e.asset_id AS asset_id,
    ifNull(a.symbol, '') AS symbol,
    e.address AS address,
    e.account_index AS account_index,
    in_units(e.amount, a.decimals) AS units,
    toString(e.amount) AS amount_denom,
    toFloat64(e.price) AS price,
    e.price AS price_exact,
    toFloat64(e.usd) AS usd,
    e.usd AS usd_exact,
    e.contract AS contract,
    e.destination AS destination,
    e.tx_hash AS tx_hash,
    e.uuid AS id
FROM event_version AS e FINAL
LEFT JOIN all_assets AS a ON a.asset_id = e.asset_id
WHERE NOT e.removed AND e.at <= (SELECT least(max(at), now() + 60) FROM snapshot_head WHERE dataset = 'loans')
-- A condition on time applies before other columns are read: FINAL allows that for its sort key.
SETTINGS join_use_nulls = 1, optimize_move_to_prewhere_if_final = 1
COMMENT 'Every event of every address';

CREATE OR REPLACE VIEW loan{on_cluster}
(
    time DateTime64(3, 'UTC') COMMENT 'Instant of the loan, in whole seconds',
    asset_id String COMMENT 'Asset id',
    symbol String COMMENT 'Symbol of the asset',
    address String COMMENT 'Address of the borrower',
    units Nullable(Float64) COMMENT 'Amount in standard units. Null if the asset is not defined',
    usd Nullable(Float64) COMMENT 'USD value of the amount at the time of the loan. Null if unknown',
    id String COMMENT 'UUID of the event: event_uuid in the API'
)
AS SELECT time, asset_id, symbol, address, units, usd, id
FROM events
WHERE action = 'borrow'
COMMENT 'Every loan: the events with the action borrow. Flash loans are not among them';
