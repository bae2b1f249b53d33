-- Which lending events are stored of a range of time, and who has brought each?
SELECT {columns}, brought_by
FROM event FINAL
WHERE at > toDateTime({since:UInt32}, 'UTC')
  AND at <= toDateTime({until:UInt32}, 'UTC')
  AND NOT gone
