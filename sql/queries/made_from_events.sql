-- Which versions of loans have sums of events? All but those of imported values. Rows of the ledger up to an instant need not
-- be read, apart from those of values only.
SELECT version
FROM snapshot
WHERE family = 'loans'
  AND (at > toDateTime({after:UInt32}, 'UTC') OR at = toDateTime(0, 'UTC'))
GROUP BY version
HAVING countIf(kind = 'import' AND at = toDateTime(0, 'UTC')) = 0
