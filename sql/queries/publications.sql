-- Which runs have announced that they rewrite history, and not ended? One that was last heard of a minute ago is taken
-- for dead, and may have changed anything.
SELECT family, max(announced_at) AS heard_at, heard_at <= now() - 60 AS dead
FROM publication
GROUP BY family, version
HAVING max(finished) = 0
