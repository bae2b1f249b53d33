-- Which digest of each address was written last, and was its run completed?
SELECT address, digest, version IN (SELECT version FROM snapshot WHERE family = 'positions') AS complete
FROM position_digest FINAL
