-- Which items did the given addresses have at an instant? Rows count once the ledger lists their run.
SELECT *
FROM
(
    SELECT {columns}, closed
    FROM position
    WHERE address IN {addresses:Array(String)}
      AND observed_at <= toDateTime({at:UInt32}, 'UTC')
      AND (observed_at, version) IN
      (
          SELECT at, version
          FROM snapshot
          WHERE family = 'positions'
            AND at IN
            (
                SELECT observed_at
                FROM position
                WHERE address IN {addresses:Array(String)} AND observed_at <= toDateTime({at:UInt32}, 'UTC')
            )
      )
    ORDER BY {key}, observed_at DESC
    LIMIT 1 BY {key}
)
WHERE NOT closed
