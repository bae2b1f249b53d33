-- Tables and views that others have replaced.

DROP TABLE IF EXISTS asset{on_cluster} SYNC;

DROP TABLE IF EXISTS correction{on_cluster} SYNC;

DROP VIEW IF EXISTS doubts{on_cluster};

DROP VIEW IF EXISTS doubts_since{on_cluster};

-- All of its events are in account_event, too.
DROP TABLE IF EXISTS event{local}{on_cluster} SYNC;

DROP VIEW IF EXISTS account_events{on_cluster};
