-- What did all loans come to at a snapshot, by asset and (under the empty id) in all?
SELECT asset_id, usd
FROM loans_originated
WHERE observed_at = toDateTime({at:UInt32}, 'UTC')
ORDER BY asset_id, version DESC
LIMIT 1 BY asset_id
