-- Whose data does the store take? Nothing before the first run. The oldest claim holds.
SELECT side
FROM claim
ORDER BY claimed_at, side
LIMIT 1
