-- Of which complete snapshots in a range does a table have fewer rows than the ledger counts? What rewrites have added to
-- a snapshot since, and rows that were sent twice, may make them more.
SELECT '{family}' AS family, '{table}' AS what, toUnixTimestamp(at) AS at
FROM
(
    SELECT at, max(version) AS version, argMax(table_rows[indexOf(tables, '{table}')], s.version) AS expected
    FROM snapshot AS s
    WHERE family = '{family}'
      AND kind IN ('job', 'backfill')
      AND at BETWEEN toDateTime({since:UInt32}, 'UTC') AND toDateTime({last:UInt32}, 'UTC')
    GROUP BY at
) AS listed
LEFT JOIN
(
    SELECT observed_at, version, count() AS present
    FROM {table}
    WHERE observed_at BETWEEN toDateTime({since:UInt32}, 'UTC') AND toDateTime({last:UInt32}, 'UTC')
    GROUP BY observed_at, version
) AS stored ON listed.at = stored.observed_at AND listed.version = stored.version
WHERE present < expected
