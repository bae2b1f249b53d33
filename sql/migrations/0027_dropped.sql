-- What the write lock has replaced.

DROP TABLE IF EXISTS correction_progress{on_cluster} SYNC;
