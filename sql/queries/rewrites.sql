-- How many rewrites of some families were announced so far, and how many of them have finished? Nothing of families without
-- any.
SELECT toString(family) AS name, count() AS announced, countIf(finished) AS finished
FROM rewrite FINAL
WHERE family IN {families:Array(String)}
GROUP BY name
SETTINGS max_threads = 1
