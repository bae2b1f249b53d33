-- Which items did the given addresses have at an instant?
SELECT *
FROM
(
    SELECT {columns}, closed
    FROM position
    WHERE address IN {addresses:Array(String)}
      AND observed_at <= toDateTime({at:UInt32}, 'UTC')
    ORDER BY {key}, observed_at DESC, version DESC
    LIMIT 1 BY {key}
)
WHERE NOT closed
