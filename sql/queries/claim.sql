-- Whose data does the store take? Nothing before the first run.
SELECT side
FROM claim
LIMIT 1
