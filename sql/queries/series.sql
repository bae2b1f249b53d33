-- Series of histories: observations and rollups of a range, last values, and prices.

-- name: list_series
-- The series with observations up to an instant, and the instant of the first observation of each, known or not. It
-- reads few rows: rollups of months before the instant's month, of days before its day, of 15 minutes before its 15
-- minutes, then observations.
SELECT asset_id, toUnixTimestamp(min(p.first_at)) AS first_at
FROM
(
    SELECT asset_id, first_at, count > 0 AS has_value
    FROM rollup
    WHERE history = {history:String}
      AND ((width = 'month' AND start < toDateTime({month:UInt32}, 'UTC'))
        OR (width = 'day' AND start >= toDateTime({month:UInt32}, 'UTC') AND start < toDateTime({day:UInt32}, 'UTC'))
        OR (width = '15min' AND start >= toDateTime({day:UInt32}, 'UTC')
            AND start < toDateTime({fifteen_minutes:UInt32}, 'UTC')))

    UNION ALL

    SELECT asset_id, observed_at AS first_at, known AS has_value
    FROM observation
    WHERE history = {history:String}
      AND observed_at >= toDateTime({fifteen_minutes:UInt32}, 'UTC') AND observed_at < toDateTime({before:UInt32}, 'UTC')
) AS p
GROUP BY asset_id
HAVING max(p.has_value)
ORDER BY asset_id

-- name: read_last_before
-- The rollups and observations that may have the last value of each series before an instant, however long ago. It
-- reads few rows: rollups of months before the instant's month, of days before its day, of 15 minutes before its 15
-- minutes, then observations.
SELECT asset_id, first_at, last_at, known, close
FROM rollup FINAL
WHERE history = {history:String}
  AND asset_id IN {ids:Array(String)}
  AND (
    (width = 'month' AND start < toDateTime({month:UInt32}, 'UTC'))
    OR (width = 'day' AND start >= toDateTime({month:UInt32}, 'UTC')
        AND start < toDateTime({day:UInt32}, 'UTC'))
    OR (width = '15min' AND start >= toDateTime({day:UInt32}, 'UTC')
        AND start < toDateTime({fifteen_minutes:UInt32}, 'UTC')))

UNION ALL

SELECT asset_id, observed_at AS first_at, observed_at AS last_at, known, value AS close
FROM observation FINAL
WHERE history = {history:String}
  AND asset_id IN {ids:Array(String)}
  AND observed_at >= toDateTime({fifteen_minutes:UInt32}, 'UTC')
  AND observed_at < toDateTime({before:UInt32}, 'UTC')

-- name: read_day_rollups
-- The rollups of days and 15 minutes that cover a range. Days in which a bucket begins or ends are read as 15min
-- rollups, except rollups in which a bucket begins.
SELECT asset_id, first_at, last_at, count, known, seconds, open, high, low, close, area
FROM rollup FINAL
WHERE history = {history:String}
  AND ({all:UInt8} OR asset_id IN {ids:Array(String)})
  AND (
    (width = 'day' AND start >= toDateTime({start:UInt32}, 'UTC') AND start < toDateTime({days_to:UInt32}, 'UTC')
        AND toUnixTimestamp(start) NOT IN {edge_days:Array(UInt32)})
    OR (width = '15min' AND start >= toDateTime({start:UInt32}, 'UTC') AND start < toDateTime({raw_from:UInt32}, 'UTC')
        AND toUnixTimestamp(start) NOT IN {edge_starts:Array(UInt32)}
        AND (start >= toDateTime({days_to:UInt32}, 'UTC')
            OR toUnixTimestamp(toStartOfDay(start)) IN {edge_days:Array(UInt32)})))

-- name: read_15min_rollups
-- The 15min rollups that cover a range, except rollups in which a bucket begins.
SELECT asset_id, first_at, last_at, count, known, seconds, open, high, low, close, area
FROM rollup FINAL
WHERE history = {history:String}
  AND width = '15min'
  AND ({all:UInt8} OR asset_id IN {ids:Array(String)})
  AND start >= toDateTime({start:UInt32}, 'UTC')
  AND start < toDateTime({raw_from:UInt32}, 'UTC')
  AND toUnixTimestamp(start) NOT IN {edge_starts:Array(UInt32)}

-- name: read_edges
-- The observations in the 15 minutes of a range in which a bucket begins, each as a rollup of its own. The newest of
-- several rows for a second wins. They are few; FINAL would merge all rows that are read with them.
SELECT
    asset_id,
    observed_at AS first_at,
    observed_at AS last_at,
    toUInt32(is_known) AS count,
    is_known AS known,
    toUInt32(0) AS seconds,
    newest AS open,
    newest AS high,
    newest AS low,
    newest AS close,
    toDecimal256(0, 18) AS area
FROM
(
    SELECT asset_id, observed_at, argMax(value, version) AS newest, argMax(known, version) AS is_known
    FROM observation
    WHERE history = {history:String}
      AND ({all:UInt8} OR asset_id IN {ids:Array(String)})
      AND observed_at >= toDateTime({start:UInt32}, 'UTC')
      AND observed_at < toDateTime({end:UInt32}, 'UTC')
      AND toUnixTimestamp(toStartOfFifteenMinutes(observed_at)) IN {edge_starts:Array(UInt32)}
    GROUP BY asset_id, observed_at
)

-- name: read_tail
-- The observations in a range that is too short for rollups, or not aligned to them, each as a rollup of its own.
SELECT
    asset_id,
    observed_at AS first_at,
    observed_at AS last_at,
    toUInt32(known) AS count,
    known,
    toUInt32(0) AS seconds,
    value AS open,
    value AS high,
    value AS low,
    value AS close,
    toDecimal256(0, 18) AS area
FROM observation FINAL
WHERE history = {history:String}
  AND ({all:UInt8} OR asset_id IN {ids:Array(String)})
  AND observed_at >= toDateTime({raw_from:UInt32}, 'UTC')
  AND observed_at < toDateTime({end:UInt32}, 'UTC')

-- name: summarize_buckets
-- A summary of each series in each bucket. `series` is the position of the asset in ids, from 0; for any other asset it
-- is the number of ids. `area` is the sum of each value times the seconds for which it was valid, from the first to the
-- last observation in the bucket, as whole units and as 10^-18 of them, and `seconds` are the seconds with a known
-- value. Observations without a value are not counted. Filters are on the sort key alone, so that they apply before
-- FINAL.
SELECT
    toUInt32(transform(asset_id, {ids:Array(String)}, range(length({ids:Array(String)})), length({ids:Array(String)})))
        AS series,
    toUnixTimestamp(min(p.first_at)) AS first_at,
    toUnixTimestamp(max(p.last_at)) AS last_at,
    toUInt32(sum(p.count)) AS count,
    argMinOrNullIf(p.open, p.first_at, p.count > 0) AS open,
    maxOrNullIf(p.high, p.count > 0) AS high,
    minOrNullIf(p.low, p.count > 0) AS low,
    if(argMax(p.known, p.last_at), toString(argMax(p.close, p.last_at)), NULL) AS close,
    toUInt32(sum(p.seconds + p.seconds_until_first)) AS seconds,
    toDecimal128(floor(sum(p.area + p.until_first) AS total), 0) AS units,
    toUInt64((total - floor(total)) * 1000000000000000000) AS rest
FROM
(
    SELECT
        asset_id,
        first_at,
        last_at,
        count,
        known,
        seconds,
        open,
        high,
        low,
        close,
        area,
        roundDown(toUnixTimestamp(first_at), {bounds:Array(UInt32)}) AS bucket,
        (toUnixTimestamp(first_at) - toUnixTimestamp(lagInFrame(last_at, 1, first_at) OVER earlier))
            * (lagInFrame(known) OVER earlier) AS seconds_until_first,
        seconds_until_first * toDecimal256(lagInFrame(close) OVER earlier, 18) AS until_first
    FROM ({parts})
    WINDOW earlier AS (
        PARTITION BY asset_id, bucket ORDER BY first_at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
) AS p
GROUP BY asset_id, bucket
SETTINGS optimize_move_to_prewhere_if_final = 1

-- name: read_last_rows
-- The last observation of each series in each bucket. `series` is the position of the asset in ids, from 0; for any
-- other asset it is the number of ids. `close` is null if the value is unknown. Filters are on the sort key alone, so
-- that they apply before FINAL.
SELECT
    toUInt32(transform(asset_id, {ids:Array(String)}, range(length({ids:Array(String)})), length({ids:Array(String)})))
        AS series,
    toUnixTimestamp(max(p.last_at)) AS last_at,
    if(argMax(p.known, p.last_at), toString(argMax(p.close, p.last_at)), NULL) AS close
FROM ({parts}) AS p
GROUP BY asset_id, roundDown(toUnixTimestamp(p.first_at), {bounds:Array(UInt32)})
SETTINGS optimize_move_to_prewhere_if_final = 1

-- name: read_series_around
-- The rows of a series from the last observation before a second to the first observation after another.
SELECT toUnixTimestamp(observed_at) AS observed_at, value
FROM observation FINAL
WHERE history = {history:String}
  AND asset_id = {asset_id:String}
  AND observation.observed_at >=
  (
      SELECT max(observed_at)
      FROM observation
      WHERE history = {history:String}
        AND asset_id = {asset_id:String}
        AND observed_at < toDateTime({start:UInt32}, 'UTC')
  )
  AND observation.observed_at <=
  (
      SELECT ifNull(minOrNull(observed_at), toDateTime(4294967295, 'UTC'))
      FROM observation
      WHERE history = {history:String}
        AND asset_id = {asset_id:String}
        AND observed_at > toDateTime({end:UInt32}, 'UTC')
  )
ORDER BY observed_at

-- name: read_observed_between
-- The observations of histories in a range [start, end), null if unknown, and whether an import of the dataset has
-- brought them.
SELECT
    history,
    asset_id,
    observed_at,
    if(known, toNullable(value), NULL) AS value,
    toBool(version IN (SELECT version FROM snapshot WHERE dataset = {dataset:String} AND kind = 'import')) AS imported
FROM observation FINAL
WHERE history IN {histories:Array(String)}
  AND observed_at >= toDateTime({start:UInt32}, 'UTC') AND observed_at < toDateTime({end:UInt32}, 'UTC')

-- name: read_stored_prices
-- The prices of some assets at some instants that complete commits have written.
SELECT asset_id, toUnixTimestamp(observed_at) AS observed_at, argMax(o.value, o.version) AS value
FROM observation AS o
WHERE history = 'price'
  AND asset_id IN {ids:Array(String)}
  AND observed_at IN (SELECT toDateTime(arrayJoin({seconds:Array(UInt32)}), 'UTC'))
  AND version IN
  (
      SELECT version
      FROM snapshot
      WHERE dataset = 'prices'
        AND version IN
        (
            SELECT version
            FROM observation
            WHERE history = 'price'
              AND asset_id IN {ids:Array(String)}
              AND observed_at IN (SELECT toDateTime(arrayJoin({seconds:Array(UInt32)}), 'UTC'))
        )
  )
GROUP BY asset_id, observed_at

-- name: read_prices_at
-- The last price of some assets at or before ascending seconds, and its instant, without seconds before an asset's
-- first price.
SELECT s.asset_id AS asset_id, s.second AS second, o.second AS observed_at, o.value AS value
FROM
(
    SELECT arrayJoin({ids:Array(String)}) AS asset_id, arrayJoin({seconds:Array(UInt32)}) AS second
) AS s
ASOF JOIN
(
    SELECT toString(asset_id) AS asset_id, toUnixTimestamp(observed_at) AS second, value
    FROM observation FINAL
    WHERE history = 'price'
      AND asset_id IN {ids:Array(String)}
      AND observed_at <= toDateTime({last:UInt32}, 'UTC')
      AND (observed_at > toDateTime({first:UInt32}, 'UTC') OR (asset_id, observed_at) IN
      (
          SELECT asset_id, max(observed_at)
          FROM observation
          WHERE history = 'price'
            AND asset_id IN {ids:Array(String)}
            AND observed_at <= toDateTime({first:UInt32}, 'UTC')
          GROUP BY asset_id
      ))
) AS o ON s.asset_id = o.asset_id AND s.second >= o.second

-- name: list_observed_spans
-- The first and the last observation of each asset.
SELECT
    toString(asset_id) AS asset_id,
    toUnixTimestamp(min(observed_at)) AS first,
    toUnixTimestamp(max(observed_at)) AS last
FROM observation
WHERE asset_id != ''
GROUP BY asset_id
ORDER BY asset_id

-- name: count_anomalies
-- The number of values in [start, end) (unix seconds) that may be wrong.
SELECT count() AS anomalies FROM anomalies(start = {start:UInt32}, end = {end:UInt32}, factor = 3)

-- name: list_anomalies
-- The values in [start, end) (unix seconds) that may be wrong.
SELECT kind, history, symbol, asset_id, toUnixTimestamp(observed_at) AS at, value, before
FROM anomalies(start = {start:UInt32}, end = {end:UInt32}, factor = 3)
ORDER BY history != 'price', observed_at, history, asset_id
