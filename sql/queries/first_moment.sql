-- From which instant on does a family have snapshots or imported observations? Nothing if it has none. The oldest
-- snapshot is found by the order of the table, and only imports are looked through, without those of values only.
SELECT min(begins_at) AS first
FROM
(
    SELECT begins_at
    FROM
    (
        SELECT at AS begins_at
        FROM snapshot
        WHERE family = {family:String}
          AND kind IN ('job', 'backfill')
        ORDER BY at
        LIMIT 1
    )

    UNION ALL

    SELECT first_observed_at AS begins_at
    FROM snapshot
    WHERE family = {family:String}
      AND kind = 'import'
      AND at > toDateTime(0, 'UTC')
)
HAVING count() > 0
SETTINGS max_threads = 1
