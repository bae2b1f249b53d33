-- In which UTC months does a rewrite take out observations? Each is a partition.
SELECT DISTINCT toYYYYMM(observed_at) AS month
FROM {removed:Identifier}
ORDER BY month
