-- Views that have another name now.

DROP VIEW IF EXISTS doubts{on_cluster};
DROP VIEW IF EXISTS doubts_since{on_cluster};
