-- Whose data does the store take, and which source is its own? Nothing before the first run.
SELECT side, source, toUnixTimestamp64Micro(claimed_at) AS made
FROM claim
ORDER BY claimed_at DESC
LIMIT 1
