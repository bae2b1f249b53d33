-- Computes the cells of a width (day or month) of a history that begin in a range of time from those of the next smaller
-- width. Versions are as in fill_quarters. From the last observation of a cell to the first one of the next the close
-- holds; after the last cell nothing is added, as there `next_at` is its own last observation.
INSERT INTO cell (history, width, asset_id, cell, first_at, last_at, count, unknown, known, seconds, open, high, low,
    close, area, version)
SELECT
    {history:String},
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
        FROM cell
        WHERE history = {history:String} AND width = {width:String}
          AND cell >= toDateTime({since:UInt32}, 'UTC') AND cell < toDateTime({until:UInt32}, 'UTC')
    ))
FROM
(
    SELECT
        *,
        if({width:String} = 'day', toStartOfDay(cell), toDateTime(toStartOfMonth(cell), 'UTC')) AS begins_at,
        leadInFrame(first_at, 1, last_at) OVER (
            PARTITION BY asset_id, begins_at
            ORDER BY cell
            ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS next_at
    FROM cell FINAL
    WHERE history = {history:String}
      AND width = if({width:String} = 'day', 'quarter', 'day')
      AND begins_at >= toDateTime({since:UInt32}, 'UTC') AND begins_at < toDateTime({until:UInt32}, 'UTC')
)
GROUP BY asset_id, begins_at
SETTINGS optimize_on_insert = 0
