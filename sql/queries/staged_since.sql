-- When was the oldest row of a table observed? Nothing without rows.
SELECT toUnixTimestamp(min(observed_at)) AS oldest
FROM {table:Identifier}
HAVING count() > 0
