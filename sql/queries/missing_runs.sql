-- How many scheduled instants since one, up to the newest, have no snapshot of each family? A snapshot at any second
-- counts for the multiple of the interval before it. Instants to come do not.
SELECT
    family,
    max(instant) - min(instant) + 1 - uniqExact(instant) AS missing
FROM
(
    SELECT
        family,
        intDiv(toUInt32(at), transform(family, {families:Array(String)}, {intervals:Array(UInt32)}, 1)) AS instant,
        minIf(instant, kind = 'job') OVER (PARTITION BY family) AS first,
        countIf(kind = 'job') OVER (PARTITION BY family) AS scheduled
    FROM snapshot
    WHERE family IN {families:Array(String)} AND kind IN ('job', 'backfill') AND at BETWEEN toDateTime({since:UInt32}) AND now() + 60
)
WHERE instant >= first AND scheduled > 0
GROUP BY family
