-- Tables that others have replaced.

DROP TABLE IF EXISTS asset{on_cluster} SYNC;

DROP TABLE IF EXISTS correction{on_cluster} SYNC;
