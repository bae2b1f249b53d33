-- Computes cells of a history from raw rows: those that end after an instant and are closed, and those with an observation
-- of a version. The version of a cell is the present time, or a number after the greatest version that there is: whoever
-- computes a cell last has seen all rows that others had before.
-- Of several rows for one instant the last one holds: that without another one right after it. Rows come sorted, so this
-- takes a third of the time of grouping them by instant. After the last one of a series there is none, and `next_at` is
-- later than any: by default it would be the first second of 1970, at which there may be an observation.
INSERT INTO cell (history, width, asset_id, cell, first_at, last_at, count, open, high, low, close, area, version)
SELECT
    {history:String},
    cell_width,
    asset_id,
    begins_at,
    min(observed_at),
    max(observed_at),
    count(),
    argMin(value, observed_at),
    max(value),
    min(value),
    argMax(value, observed_at),
    sum(if(next_at < ends_at, next_at - observed_at, 0) * toDecimal256(value, 18)),
    greatest(toUInt64(toUnixTimestamp64Nano(now64(9))), (SELECT max(version) FROM snapshot_head) + 1)
FROM
(
    SELECT
        cell_width,
        asset_id,
        observed_at,
        value,
        version,
        next_at,
        multiIf(
            cell_width = 'quarter', toStartOfFifteenMinutes(observed_at),
            cell_width = 'day', toStartOfDay(observed_at),
            toDateTime(toStartOfMonth(observed_at), 'UTC')) AS begins_at,
        multiIf(
            cell_width = 'quarter', begins_at + 900,
            cell_width = 'day', begins_at + 86400,
            addMonths(begins_at, 1)) AS ends_at
    FROM
    (
        SELECT
            asset_id,
            observed_at,
            value,
            version,
            leadInFrame(observed_at, 1, toDateTime(4294967295, 'UTC')) OVER (
                PARTITION BY asset_id
                ORDER BY observed_at, version
                ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS next_at
        FROM observation FINAL
        WHERE history = {history:String}
          AND observed_at >= toDateTime({since:UInt32}, 'UTC') AND observed_at < toDateTime({until:UInt32}, 'UTC')
          AND asset_id >= {first:String} AND ({before:String} = '' OR asset_id < {before:String})
    )
    ARRAY JOIN ['quarter', 'day', 'month'] AS cell_width
    WHERE next_at != observed_at
)
GROUP BY cell_width, asset_id, begins_at
HAVING max(version = {version:UInt64})
    OR any(ends_at > toDateTime({after:UInt32}, 'UTC') AND ends_at <= toDateTime({closed_until:UInt32}, 'UTC'))
-- No cell comes twice, so there is nothing to replace among them.
SETTINGS optimize_on_insert = 0
