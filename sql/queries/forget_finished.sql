-- Drop the announcements of runs that append, a day after they have finished. Those that nobody could complete stay.
DELETE FROM append_run
WHERE (family, version) IN
(
    SELECT family, version
    FROM append_run
    GROUP BY family, version
    HAVING max(finished) = 1 AND max(announced_at) <= now() - INTERVAL 1 DAY
)
