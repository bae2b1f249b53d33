-- Who holds the write lock, or asks for it, oldest first? A row without a heartbeat for some seconds, or with one from the
-- future, counts no more.
SELECT holder, what, family, command, toUnixTimestamp(taken_at) AS taken_at
FROM write_lock FINAL
WHERE NOT released
  AND heard_at BETWEEN now64(3) - toIntervalSecond({seconds:UInt32}) AND now64(3) + toIntervalSecond({seconds:UInt32})
ORDER BY write_lock.taken_at
SETTINGS max_threads = 1
