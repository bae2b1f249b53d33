-- Drop what schedulers reported while the clock was ahead, because older reports give way to newer ones.
DELETE FROM job_run
WHERE heard_at > now()
