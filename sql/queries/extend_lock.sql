-- Sends a heartbeat of the holder of the write lock, which counts only while the lock is held.
INSERT INTO write_lock
SELECT * REPLACE (now64(3) AS heard_at)
FROM write_lock AS l FINAL
WHERE holder = {holder:String}
  AND NOT released
  AND l.heard_at BETWEEN now64(3) - toIntervalSecond({seconds:UInt32}) AND now64(3) + toIntervalSecond({seconds:UInt32})
