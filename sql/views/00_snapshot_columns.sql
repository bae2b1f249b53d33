-- The snapshots of an answer. Fills {snapshot_columns}.
markets_at Nullable(DateTime64(3, 'UTC')) COMMENT 'Instant of the snapshot of markets. Null if there was none',
prices_at Nullable(DateTime64(3, 'UTC')) COMMENT 'Instant of the snapshot of prices, from which the age of prices counts. Null if there was none, such as with imported prices only'
