-- One list of events.

DROP VIEW IF EXISTS account_events{on_cluster};
