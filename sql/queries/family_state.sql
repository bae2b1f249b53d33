-- What is the newest completed state of a family? Rewrites of it are not looked at.
SELECT at, last_observed_at, version, runs
FROM snapshot_head FINAL
WHERE family = {family:String}
SETTINGS max_threads = 1
