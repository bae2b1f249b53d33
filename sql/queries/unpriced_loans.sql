-- How many loans by a unix second have no value? FINAL reads no more than the events that have had none in some version.
SELECT count() AS count
FROM account_event FINAL
WHERE (address, at, uuid) IN
    (
        SELECT address, at, uuid
        FROM account_event
        WHERE action = 'borrow' AND usd IS NULL AND at <= toDateTime({until:UInt32}, 'UTC')
    )
  AND action = 'borrow'
  AND usd IS NULL
  AND amount != 0
  AND NOT gone
