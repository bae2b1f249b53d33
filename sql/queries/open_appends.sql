-- Which runs that add to the end of a family are unfinished?
SELECT version
FROM append_run
WHERE family = {family:String}
GROUP BY version
HAVING max(finished) = 0
ORDER BY version
SETTINGS max_threads = 1
