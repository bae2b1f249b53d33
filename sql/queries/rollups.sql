-- Rollups of 15 minutes, a UTC day and a UTC month: how they are computed and deleted.

-- name: compute_15min_rollups
-- Computes 15min rollups of histories from observations: rollups that observations in [start, end) close, and rollups
-- with an observation of a version, or that a rewrite has touched. The version of a rollup is the time of its
-- computation, which starts once the rows are in place, or the greatest version of the existing rollups plus one: the
-- last computation has seen all rows that earlier ones saw. `next_at` of a series' last row is after all instants; the
-- default would be the first second of 1970, which may have an observation.
INSERT INTO rollup (history, width, asset_id, start, first_at, last_at, count, unknown, known, seconds, open, high, low,
    close, area, version)
SELECT
    history,
    '15min',
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
        FROM rollup
        WHERE history IN {histories:Array(String)} AND width = '15min'
          AND start >= toDateTime({start:UInt32}, 'UTC') AND start < toDateTime({end:UInt32}, 'UTC')
    ))
FROM
(
    SELECT
        history,
        asset_id,
        observed_at,
        value,
        known,
        version,
        leadInFrame(observed_at, 1, toDateTime(4294967295, 'UTC')) OVER (
            PARTITION BY history, asset_id
            ORDER BY observed_at
            ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS next_at,
        if(next_at < toStartOfFifteenMinutes(observed_at) + 900, next_at - observed_at, 0) AS held_for
    FROM observation FINAL
    WHERE history IN {histories:Array(String)}
      AND observed_at >= toDateTime({start:UInt32}, 'UTC') AND observed_at < toDateTime({end:UInt32}, 'UTC')
)
GROUP BY history, asset_id, begins_at
HAVING max(version = {version:UInt64})
    OR {touched}
    OR (begins_at + 900 > toDateTime({closed_from:UInt32}, 'UTC') AND begins_at + 900 <= toDateTime({closed_to:UInt32}, 'UTC'))
-- No rollup comes twice, so there is nothing to replace among them.
SETTINGS optimize_on_insert = 0

-- name: compute_wider_rollups
-- Computes the rollups of a width (day or month) of histories that begin in a range of time from rollups of the next
-- smaller width, with versions as in compute_15min_rollups. The close is valid from the last observation of a rollup to
-- the first observation of the next; after the last rollup, `next_at` is its own last observation, which adds nothing.
INSERT INTO rollup (history, width, asset_id, start, first_at, last_at, count, unknown, known, seconds, open, high, low,
    close, area, version)
SELECT
    history,
    {width:String},
    asset_id,
    begins_at,
    min(first_at),
    max(last_at),
    sum(count),
    sum(unknown),
    argMax(known, first_at),
    sum(seconds + known * (next_at - last_at)),
    argMinIf(open, first_at, count > 0),
    maxIf(high, count > 0),
    minIf(low, count > 0),
    argMax(close, first_at),
    sum(area + (next_at - last_at) * toDecimal256(close, 18)),
    greatest({computed:UInt64}, (
        SELECT max(version) + 1
        FROM rollup
        WHERE history IN {histories:Array(String)} AND width = {width:String}
          AND start >= toDateTime({start:UInt32}, 'UTC') AND start < toDateTime({end:UInt32}, 'UTC')
    ))
FROM
(
    SELECT
        *,
        if({width:String} = 'day', toStartOfDay(start), toDateTime(toStartOfMonth(start), 'UTC')) AS begins_at,
        leadInFrame(first_at, 1, last_at) OVER (
            PARTITION BY history, asset_id, begins_at
            ORDER BY start
            ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS next_at
    FROM rollup FINAL
    WHERE history IN {histories:Array(String)}
      AND width = if({width:String} = 'day', '15min', 'day')
      AND begins_at >= toDateTime({start:UInt32}, 'UTC') AND begins_at < toDateTime({end:UInt32}, 'UTC')
)
GROUP BY history, asset_id, begins_at
SETTINGS optimize_on_insert = 0

-- name: find_touched_15min
-- The series and 15min rollups in which a rewrite removes observations, in a range of time.
SELECT history, asset_id, toStartOfFifteenMinutes(observed_at)
FROM {removed}
WHERE observed_at >= toDateTime({start:UInt32}, 'UTC') AND observed_at < toDateTime({end:UInt32}, 'UTC')

-- name: list_rollups_of_observation
-- The rollups, by width, that contain an observation.
[
    (CAST('15min', 'Enum8(\'15min\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfFifteenMinutes(observed_at)),
    (CAST('day', 'Enum8(\'15min\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfDay(observed_at)),
    (CAST('month', 'Enum8(\'15min\' = 1, \'day\' = 2, \'month\' = 3)'), toDateTime(toStartOfMonth(observed_at), 'UTC'))
]

-- name: delete_touched_rollups
-- Deletes the rollups of all widths with observations that a rewrite removes. Rollups with other observations are
-- computed again. A mutation executes its subqueries for each part of the table, so this one reads nothing else.
DELETE FROM rollup{local}{on_cluster}
WHERE (history, width, asset_id, start) IN
    (
        SELECT history, c.1, asset_id, c.2
        FROM {removed}{local}
        ARRAY JOIN {rollups} AS c
    )
SETTINGS lightweight_deletes_sync = 2

-- name: count_rows_by_day
-- The number of rows of histories in each UTC day (its start) of a range of time. Replaced rows count until they are
-- merged.
SELECT toUnixTimestamp(toStartOfDay(observed_at)) AS day, count() AS rows
FROM observation
WHERE history IN {histories:Array(String)}
  AND observed_at >= toDateTime({start:UInt32}, 'UTC')
  AND observed_at < toDateTime({end:UInt32}, 'UTC')
GROUP BY day

-- name: count_15min_rollups
-- The number of 15min rollups with observations in a range, over all series, up to `most`.
SELECT count() AS rollups
FROM
(
    SELECT 1
    FROM rollup FINAL
    WHERE history = {history:String}
      AND width = '15min'
      AND start >= toDateTime({start:UInt32}, 'UTC')
      AND start < toDateTime({end:UInt32}, 'UTC')
    LIMIT {most:UInt64}
)
