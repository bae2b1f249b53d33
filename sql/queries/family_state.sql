-- What is the newest completed state of a family? Without its count of rewrites, which costs more.
SELECT at, last_observed_at, version, runs
FROM snapshot_head FINAL
WHERE family = {family:String}
SETTINGS max_threads = 1
