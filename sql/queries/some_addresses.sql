-- Which addresses divide all that have had a position into ranges of about so many?
SELECT DISTINCT address
FROM position_digest
WHERE cityHash64(address) % {one_of:UInt32} = 0
ORDER BY address
