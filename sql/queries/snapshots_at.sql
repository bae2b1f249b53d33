-- Which snapshot of each of some families was the last that jobs and backfills completed in each part of a range? Parts
-- begin at `starts`, which ascend from 0, and the last one ends at `last`.
SELECT name, start, newest.1 AS at, newest.2 AS version
FROM
(
    SELECT
        toString(family) AS name,
        roundDown(toUnixTimestamp(s.at), {starts:Array(UInt32)}) AS start,
        max((toUnixTimestamp(s.at), version)) AS newest
    FROM snapshot AS s
    WHERE family IN {families:Array(String)}
      AND kind IN ('job', 'backfill')
      AND s.at <= toDateTime({last:UInt32}, 'UTC')
    GROUP BY name, start
)
