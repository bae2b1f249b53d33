-- Computes cells from raw rows. Writing a cell again does no harm: the same rows give the same rank, and additional or
-- newer rows give a greater one.
-- Of several rows for one instant the last one holds: that without another one right after it. Rows come sorted, so this
-- takes a third of the time of grouping them by instant. After the last one of a series there is none, and `next_at` is
-- later than any: by default it would be the first second of 1970, at which there may be an observation.
INSERT INTO {cells:Identifier} (width, asset_id, cell, first_at, last_at, count, open, high, low, close, area, rank)
SELECT
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
    sum(version)
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
        FROM ({rows})
    )
    ARRAY JOIN ['quarter', 'day', 'month'] AS cell_width
    WHERE next_at != observed_at
)
WHERE {where}
GROUP BY cell_width, asset_id, begins_at
HAVING {having}
-- No cell comes twice, so there is nothing to replace among them.
SETTINGS optimize_on_insert = 0
