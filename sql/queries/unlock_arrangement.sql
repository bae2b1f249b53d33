-- Which unlock arrangements are there at a snapshot?
SELECT address, arrangement AS index, member_class, kind, toString(amount) AS amount, toString(claimed) AS claimed,
    begins_at, ends_at, expires_at, last_claimed_at, admin, reclaimed_at, toString(staked) AS staked, toString(held) AS held
FROM unlock_arrangement
WHERE observed_at = toDateTime({at:UInt32}, 'UTC')
ORDER BY address, arrangement, version DESC
LIMIT 1 BY address, arrangement
