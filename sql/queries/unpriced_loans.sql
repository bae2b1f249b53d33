-- How many loans by a unix second have no value? Only those are read a second time, for their newest versions.
SELECT count() AS count
FROM event FINAL
WHERE (at, id) GLOBAL IN
    (
        SELECT at, id
        FROM event
        WHERE usd = 0 AND amount != 0 AND kind = 'borrow' AND at <= toDateTime({until:UInt32}, 'UTC')
    )
  AND usd = 0
  AND NOT gone
