-- How many rewrites of a family were announced so far, and how many of them have finished?
SELECT uniqExact(version) AS announced, uniqExactIf(version, finished = 1) AS finished
FROM publication
WHERE family = {family:String}
SETTINGS max_threads = 1
