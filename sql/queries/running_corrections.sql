-- Which corrections are at work, or wait for others, oldest first? A writer that is silent for five seconds has died.
SELECT began_ns, family, version, what, command, stage, rows, expected, first_at, last_at
FROM correction_progress FINAL
WHERE stage NOT IN ('done', 'stopped')
  AND heard_at >= now64(3) - INTERVAL 5 SECOND
  AND (family, version) NOT IN (SELECT family, version FROM rewrite WHERE finished)
ORDER BY began_ns
SETTINGS max_threads = 1
