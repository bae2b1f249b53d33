-- The view anomalies computes what this table kept.

DROP TABLE IF EXISTS doubt{on_cluster} SYNC;

DROP VIEW IF EXISTS anomalies_since{on_cluster};
