-- Which values were observed in those quarter hours of a range within which a bucket begins? Each is a cell of its own.
-- Of several rows for one second the newest holds. They are few; FINAL would merge all rows that are read with them.
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
      AND observed_at >= toDateTime({since:UInt32}, 'UTC')
      AND observed_at < toDateTime({until:UInt32}, 'UTC')
      AND toUnixTimestamp(toStartOfFifteenMinutes(observed_at)) IN {edge_quarters:Array(UInt32)}
    GROUP BY asset_id, observed_at
)
