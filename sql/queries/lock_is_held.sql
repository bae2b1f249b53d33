-- Does a holder still have the write lock: did it release nothing, and was its last heartbeat some seconds ago at most?
SELECT count() = 1 AS held
FROM write_lock FINAL
WHERE holder = {holder:String}
  AND NOT released
  AND heard_at BETWEEN now64(3) - toIntervalSecond({seconds:UInt32}) AND now64(3) + toIntervalSecond({seconds:UInt32})
