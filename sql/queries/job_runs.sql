-- What did each scheduler record last about each family, and how many seconds ago?
SELECT family, scheduler, toInt64(now() - heard_at) AS age, every, next_at, failed_at, error, ran_at, outcome, took_ms
FROM job_run FINAL
ORDER BY heard_at DESC, scheduler, family
