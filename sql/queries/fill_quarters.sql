-- Computes cells of quarter hours of a history from raw rows: those that observations in [start, end) close, and those
-- with an observation of a version, or that a rewrite has touched. The version of a cell is that of its computation,
-- which began once the rows were in place, or a number after the greatest version of the cells that are there: whoever
-- computes a cell last has seen all rows that others had before. After the last row of a series there is none, and
-- `next_at` is later than any: by default it would be the first second of 1970, at which there may be an observation.
INSERT INTO cell (history, width, asset_id, cell, first_at, last_at, count, unknown, known, seconds, open, high, low,
    close, area, version)
SELECT
    {history:String},
    'quarter',
    asset_id,
    toStartOfFifteenMinutes(observed_at) AS begins_at,
    min(observed_at),
    max(observed_at),
    countIf(known),
    countIf(NOT known),
    argMax(known, observed_at),
    sumIf(held_for, known),
    argMinIf(value, observed_at, known),
    maxIf(value, known),
    minIf(value, known),
    argMax(value, observed_at),
    sumIf(held_for * toDecimal256(value, 18), known),
    greatest({computed:UInt64}, (
        SELECT max(version) + 1
        FROM cell
        WHERE history = {history:String} AND width = 'quarter'
          AND cell >= toDateTime({since:UInt32}, 'UTC') AND cell < toDateTime({until:UInt32}, 'UTC')
    ))
FROM
(
    SELECT
        asset_id,
        observed_at,
        value,
        known,
        version,
        leadInFrame(observed_at, 1, toDateTime(4294967295, 'UTC')) OVER (
            PARTITION BY asset_id
            ORDER BY observed_at
            ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS next_at,
        if(next_at < toStartOfFifteenMinutes(observed_at) + 900, next_at - observed_at, 0) AS held_for
    FROM observation FINAL
    WHERE history = {history:String}
      AND observed_at >= toDateTime({since:UInt32}, 'UTC') AND observed_at < toDateTime({until:UInt32}, 'UTC')
)
GROUP BY asset_id, begins_at
HAVING max(version = {version:UInt64})
    OR {touched}
    OR (begins_at + 900 > toDateTime({start:UInt32}, 'UTC') AND begins_at + 900 <= toDateTime({end:UInt32}, 'UTC'))
-- No cell comes twice, so there is nothing to replace among them.
SETTINGS optimize_on_insert = 0
