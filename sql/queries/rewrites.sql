-- How many rewrites of a family were announced so far, and how many of them have finished?
SELECT count() AS announced, countIf(finished) AS finished
FROM rewrite FINAL
WHERE family = {family:String}
SETTINGS max_threads = 1
