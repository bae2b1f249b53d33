-- Which swap contract comes first at a snapshot?
SELECT min(contract) AS contract
FROM swap_route
WHERE observed_at = toDateTime({at:UInt32}, 'UTC') AND source != ''
HAVING count() > 0
