-- How many loans by a unix second have no value?
SELECT count() AS count
FROM event FINAL
WHERE kind = 'borrow'
  AND usd = 0
  AND amount != 0
  AND NOT gone
  AND at <= toDateTime({until:UInt32}, 'UTC')
