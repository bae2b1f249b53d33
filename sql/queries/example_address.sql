-- Which address, of those that come first, has the most kinds of items? Documentation shows requests for it.
SELECT address
FROM (SELECT address, kind FROM position WHERE observed_at <= toDateTime({at:UInt32}, 'UTC') LIMIT 50000)
GROUP BY address
ORDER BY uniqExact(kind) DESC, address
LIMIT 1
SETTINGS max_threads = 1
