-- Claims the store for a side, unless it is claimed.
INSERT INTO claim (side)
SELECT {side:String}
WHERE (SELECT count() FROM claim) = 0
