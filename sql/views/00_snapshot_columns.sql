-- The snapshots that an answer comes from, in place of {snapshot_columns}.
markets_at Nullable(DateTime64(3, 'UTC')) COMMENT 'Instant of the snapshot of markets; null if there was none',
prices_at Nullable(DateTime64(3, 'UTC')) COMMENT 'Instant of the snapshot of prices, which says what is too old; null if there was none, as where all prices were imported'
