-- One list of events. All of the dropped table are in account_event, too.

DROP TABLE IF EXISTS event{local}{on_cluster} SYNC;

DROP VIEW IF EXISTS account_events{on_cluster};
