-- Which addresses changed at an instant or later?
SELECT DISTINCT address
FROM position_digest
WHERE observed_at >= toDateTime({since:UInt32}, 'UTC')
ORDER BY address
