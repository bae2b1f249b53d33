-- A cluster of one shard
--   deduplicate_blocks_in_dependent_materialized_views = 1
--   distributed_ddl_output_mode = throw_only_active
--   distributed_ddl_task_timeout = 15
--   insert_quorum = auto
--   insert_quorum_parallel = 0
--   insert_quorum_timeout = 20000
--   max_partitions_per_insert_block = 0
--   select_sequential_consistency = 1

CREATE TABLE IF NOT EXISTS schema_migration ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree ORDER BY number;
CREATE TABLE IF NOT EXISTS snapshot ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree(version)
SETTINGS index_granularity = 256;
CREATE TABLE IF NOT EXISTS snapshot_head ON CLUSTER 'main'
ENGINE = ReplicatedAggregatingMergeTree;
CREATE MATERIALIZED VIEW IF NOT EXISTS snapshot_head_view ON CLUSTER 'main' TO snapshot_head;
CREATE TABLE IF NOT EXISTS claim ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree
SETTINGS non_replicated_deduplication_window = 100;
CREATE TABLE IF NOT EXISTS rewrite ON CLUSTER 'main'
ENGINE = ReplicatedAggregatingMergeTree;
CREATE TABLE IF NOT EXISTS job_run ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree(heard_at);
CREATE TABLE IF NOT EXISTS observation ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree(version);
CREATE TABLE IF NOT EXISTS cell ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree(version);
CREATE TABLE IF NOT EXISTS asset ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree;
CREATE TABLE IF NOT EXISTS market_lend ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS market_collateral ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS market_debt ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS market_config ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS market_price ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS ptoken_state ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS ptoken_pool ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS unlock_arrangement ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS position ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 256;
CREATE TABLE IF NOT EXISTS position_digest ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree(version);
CREATE TABLE IF NOT EXISTS position_summary ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree;
CREATE TABLE IF NOT EXISTS event ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree(version);
CREATE TABLE IF NOT EXISTS account_event ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree(version)
SETTINGS index_granularity = 256, primary_key_ratio_of_unique_prefix_values_to_skip_suffix_columns = 1;
CREATE TABLE IF NOT EXISTS flash_loan_volume ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree;
CREATE TABLE IF NOT EXISTS swap_route ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
ALTER TABLE market_lend;
ALTER TABLE unlock_arrangement;
ALTER TABLE snapshot;
CREATE TABLE IF NOT EXISTS correction ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree(heard_at);
ALTER TABLE snapshot;
ALTER TABLE asset;
ALTER TABLE asset;
ALTER TABLE claim;
ALTER TABLE claim;
ALTER TABLE event ON CLUSTER 'main';
ALTER TABLE event ON CLUSTER 'main';
ALTER TABLE event ON CLUSTER 'main';
ALTER TABLE account_event ON CLUSTER 'main';
ALTER TABLE account_event ON CLUSTER 'main';
ALTER TABLE account_event ON CLUSTER 'main';
ALTER TABLE account_event ON CLUSTER 'main';
ALTER TABLE snapshot;
ALTER TABLE snapshot;
CREATE TABLE IF NOT EXISTS flash_loan_volume ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree;
INSERT INTO observation (history, asset_id, observed_at, value, version);
DROP TABLE IF EXISTS flash_loan_volume ON CLUSTER 'main' SYNC;
CREATE TABLE IF NOT EXISTS doubt ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree(version);
ALTER TABLE position_summary;
ALTER TABLE position ON CLUSTER 'main';
ALTER TABLE market_lend;
ALTER TABLE position ON CLUSTER 'main';
ALTER TABLE position ON CLUSTER 'main';
ALTER TABLE market_lend;
ALTER TABLE market_lend;
ALTER TABLE market_lend;
ALTER TABLE market_collateral;
ALTER TABLE market_collateral;
ALTER TABLE market_debt;
ALTER TABLE market_debt;
ALTER TABLE snapshot;
ALTER TABLE snapshot;
CREATE TABLE IF NOT EXISTS loss ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree(version);
ALTER TABLE observation ON CLUSTER 'main';
ALTER TABLE observation ON CLUSTER 'main';
ALTER TABLE cell ON CLUSTER 'main';
ALTER TABLE cell ON CLUSTER 'main';
ALTER TABLE cell ON CLUSTER 'main';
ALTER TABLE cell ON CLUSTER 'main';
ALTER TABLE cell ON CLUSTER 'main';
ALTER TABLE asset;
ALTER TABLE asset;
CREATE TABLE IF NOT EXISTS asset_definition ON CLUSTER 'main' AS asset
ENGINE = ReplicatedReplacingMergeTree;
INSERT INTO asset_definition SELECT * FROM asset;
CREATE TABLE IF NOT EXISTS correction_progress ON CLUSTER 'main' AS correction
ENGINE = ReplicatedReplacingMergeTree(heard_at);
INSERT INTO correction_progress SELECT * FROM correction;
ALTER TABLE doubt;
ALTER TABLE cell ON CLUSTER 'main';
DROP TABLE IF EXISTS asset ON CLUSTER 'main' SYNC;
DROP TABLE IF EXISTS correction ON CLUSTER 'main' SYNC;
DROP VIEW IF EXISTS doubts ON CLUSTER 'main';
DROP VIEW IF EXISTS doubts_since ON CLUSTER 'main';
DROP TABLE IF EXISTS event ON CLUSTER 'main' SYNC;
DROP VIEW IF EXISTS account_events ON CLUSTER 'main';
CREATE OR REPLACE VIEW price ON CLUSTER 'main';
CREATE OR REPLACE VIEW lend_rate ON CLUSTER 'main';
CREATE OR REPLACE VIEW borrow_rate ON CLUSTER 'main';
CREATE OR REPLACE VIEW loans_originated ON CLUSTER 'main';
CREATE OR REPLACE VIEW liquidations ON CLUSTER 'main';
CREATE OR REPLACE VIEW deposits_usd ON CLUSTER 'main';
CREATE OR REPLACE VIEW collateral_usd ON CLUSTER 'main';
CREATE OR REPLACE VIEW debt_usd ON CLUSTER 'main';
CREATE OR REPLACE VIEW utilization ON CLUSTER 'main';
CREATE OR REPLACE VIEW all_assets ON CLUSTER 'main';
CREATE OR REPLACE VIEW assets ON CLUSTER 'main';
CREATE OR REPLACE VIEW asset_line ON CLUSTER 'main';
CREATE OR REPLACE VIEW price_at ON CLUSTER 'main';
CREATE OR REPLACE VIEW price_now ON CLUSTER 'main';
CREATE OR REPLACE VIEW events ON CLUSTER 'main';
CREATE OR REPLACE VIEW loan ON CLUSTER 'main';
CREATE OR REPLACE VIEW market_now ON CLUSTER 'main';
CREATE OR REPLACE VIEW market ON CLUSTER 'main';
CREATE OR REPLACE VIEW market_hour ON CLUSTER 'main';
CREATE OR REPLACE VIEW market_day ON CLUSTER 'main';
CREATE OR REPLACE VIEW position_at ON CLUSTER 'main';
CREATE OR REPLACE VIEW position_now ON CLUSTER 'main';
CREATE OR REPLACE VIEW lender ON CLUSTER 'main';
CREATE OR REPLACE VIEW account_item_at ON CLUSTER 'main';
CREATE OR REPLACE VIEW account_at ON CLUSTER 'main';
CREATE OR REPLACE VIEW account ON CLUSTER 'main';
CREATE OR REPLACE VIEW borrower ON CLUSTER 'main';
CREATE OR REPLACE VIEW account_value ON CLUSTER 'main';
CREATE OR REPLACE VIEW account_risk ON CLUSTER 'main';
CREATE OR REPLACE VIEW risk_ladder ON CLUSTER 'main';
CREATE OR REPLACE VIEW corrections ON CLUSTER 'main';
CREATE OR REPLACE VIEW anomalies_since ON CLUSTER 'main';
CREATE OR REPLACE VIEW anomalies ON CLUSTER 'main';
CREATE OR REPLACE VIEW account_history ON CLUSTER 'main';
CREATE OR REPLACE VIEW flash_loans ON CLUSTER 'main';
CREATE OR REPLACE VIEW tvl ON CLUSTER 'main';
CREATE OR REPLACE VIEW net_tvl ON CLUSTER 'main';
CREATE OR REPLACE VIEW debt_at_risk ON CLUSTER 'main';
CREATE OR REPLACE VIEW accounts_at_risk ON CLUSTER 'main';
CREATE OR REPLACE VIEW liquidatable_debt ON CLUSTER 'main';
CREATE OR REPLACE VIEW bad_debt ON CLUSTER 'main';
CREATE OR REPLACE VIEW totals ON CLUSTER 'main';
CREATE OR REPLACE VIEW price_hourly ON CLUSTER 'main';
CREATE OR REPLACE VIEW price_daily ON CLUSTER 'main';
CREATE OR REPLACE VIEW lend_rate_hourly ON CLUSTER 'main';
CREATE OR REPLACE VIEW lend_rate_daily ON CLUSTER 'main';
CREATE OR REPLACE VIEW borrow_rate_hourly ON CLUSTER 'main';
CREATE OR REPLACE VIEW borrow_rate_daily ON CLUSTER 'main';
EXCHANGE TABLES `analytics`.snapshot AND `analytics_restore_1`.snapshot ON CLUSTER 'main';
CREATE TABLE IF NOT EXISTS snapshot_staging_1 ON CLUSTER 'main' AS snapshot;
CREATE TABLE IF NOT EXISTS observation_staging_1 ON CLUSTER 'main' AS observation;
DROP TABLE IF EXISTS snapshot_staging_1, observation_staging_1 ON CLUSTER 'main' SYNC;
ALTER TABLE observation ON CLUSTER 'main' ADD COLUMN IF NOT EXISTS note String COMMENT 'As a migration may';
DELETE FROM observation ON CLUSTER 'main' WHERE (history, asset_id, observed_at) IN (SELECT history, asset_id, observed_at FROM observation_staging_1_removed) AND version < 1 SETTINGS lightweight_deletes_sync = 2;
DELETE FROM account_event ON CLUSTER 'main' WHERE brought_by = 'source' AND version < 1 AND (SELECT count() FROM snapshot_staging_1 WHERE kind IN ('-job', '-backfill')) > 0 AND at > (SELECT max(at) FROM snapshot WHERE family = 'loans' AND kind IN ('job', 'backfill')) SETTINGS lightweight_deletes_sync = 2, mutations_execute_subqueries_on_initiator = 1;
DELETE FROM cell ON CLUSTER 'main' WHERE (history, width, asset_id, cell) IN ( SELECT history, c.1, asset_id, c.2 FROM observation_staging_1_removed ARRAY JOIN [ (CAST('quarter', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfFifteenMinutes(observed_at)), (CAST('day', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfDay(observed_at)), (CAST('month', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toDateTime(toStartOfMonth(observed_at), 'UTC')) ] AS c ) AND (history, width, asset_id, cell) NOT IN ( SELECT DISTINCT history, c.1, asset_id, c.2 FROM observation ARRAY JOIN [ (CAST('quarter', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfFifteenMinutes(observed_at)), (CAST('day', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfDay(observed_at)), (CAST('month', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toDateTime(toStartOfMonth(observed_at), 'UTC')) ] AS c WHERE (history, asset_id) IN (SELECT history, asset_id FROM observation_staging_1_removed) AND toYYYYMM(observed_at) IN (SELECT toYYYYMM(observed_at) FROM observation_staging_1_removed) ) SETTINGS lightweight_deletes_sync = 2;
CREATE SETTINGS PROFILE IF NOT EXISTS analytics_researcher ON CLUSTER 'main';
ALTER SETTINGS PROFILE analytics_researcher ON CLUSTER 'main' SETTINGS;
CREATE USER IF NOT EXISTS `ann-b` ON CLUSTER 'main' IDENTIFIED WITH sha256_hash BY '00';
GRANT ON CLUSTER 'main' SELECT ON *.* TO `ann-b` WITH REPLACE OPTION;
GRANT ON CLUSTER 'main' SELECT ON system.parts TO `ann-b`;
GRANT ON CLUSTER 'main' SELECT ON system.processes TO `ann-b`;

-- A cluster of several shards
--   deduplicate_blocks_in_dependent_materialized_views = 1
--   distributed_ddl_output_mode = throw_only_active
--   distributed_ddl_task_timeout = 15
--   distributed_foreground_insert = 1
--   distributed_product_mode = global
--   insert_quorum = auto
--   insert_quorum_parallel = 0
--   insert_quorum_timeout = 20000
--   max_partitions_per_insert_block = 0
--   parallel_distributed_insert_select = 0
--   select_sequential_consistency = 1
--   skip_unavailable_shards = 0

CREATE TABLE IF NOT EXISTS schema_migration ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}') ORDER BY number;
CREATE TABLE IF NOT EXISTS snapshot ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}', version)
SETTINGS index_granularity = 256;
CREATE TABLE IF NOT EXISTS snapshot_head ON CLUSTER 'main'
ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}');
CREATE MATERIALIZED VIEW IF NOT EXISTS snapshot_head_view ON CLUSTER 'main' TO snapshot_head;
CREATE TABLE IF NOT EXISTS claim ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}')
SETTINGS non_replicated_deduplication_window = 100;
CREATE TABLE IF NOT EXISTS rewrite ON CLUSTER 'main'
ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}');
CREATE TABLE IF NOT EXISTS job_run ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}', heard_at);
CREATE TABLE IF NOT EXISTS observation_local ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree(version);
CREATE TABLE IF NOT EXISTS observation ON CLUSTER 'main' AS observation_local
ENGINE = Distributed('main', 'analytics', 'observation_local', cityHash64(asset_id));
CREATE TABLE IF NOT EXISTS cell_local ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree(version);
CREATE TABLE IF NOT EXISTS cell ON CLUSTER 'main' AS cell_local
ENGINE = Distributed('main', 'analytics', 'cell_local', cityHash64(asset_id));
CREATE TABLE IF NOT EXISTS asset ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}');
CREATE TABLE IF NOT EXISTS market_lend ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}')
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS market_collateral ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}')
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS market_debt ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}')
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS market_config ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}')
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS market_price ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}')
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS ptoken_state ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}')
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS ptoken_pool ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}')
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS unlock_arrangement ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}')
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS position_local ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 256;
CREATE TABLE IF NOT EXISTS position ON CLUSTER 'main' AS position_local
ENGINE = Distributed('main', 'analytics', 'position_local', cityHash64(address));
CREATE TABLE IF NOT EXISTS position_digest_local ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree(version);
CREATE TABLE IF NOT EXISTS position_digest ON CLUSTER 'main' AS position_digest_local
ENGINE = Distributed('main', 'analytics', 'position_digest_local', cityHash64(address));
CREATE TABLE IF NOT EXISTS position_summary ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}');
CREATE TABLE IF NOT EXISTS event_local ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree(version);
CREATE TABLE IF NOT EXISTS event ON CLUSTER 'main' AS event_local
ENGINE = Distributed('main', 'analytics', 'event_local', cityHash64(address));
CREATE TABLE IF NOT EXISTS account_event_local ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree(version)
SETTINGS index_granularity = 256, primary_key_ratio_of_unique_prefix_values_to_skip_suffix_columns = 1;
CREATE TABLE IF NOT EXISTS account_event ON CLUSTER 'main' AS account_event_local
ENGINE = Distributed('main', 'analytics', 'account_event_local', cityHash64(address));
CREATE TABLE IF NOT EXISTS flash_loan_volume ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}');
CREATE TABLE IF NOT EXISTS swap_route ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}')
SETTINGS index_granularity = 1024;
ALTER TABLE market_lend;
ALTER TABLE unlock_arrangement;
ALTER TABLE snapshot;
CREATE TABLE IF NOT EXISTS correction ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}', heard_at);
ALTER TABLE snapshot;
ALTER TABLE asset;
ALTER TABLE asset;
ALTER TABLE claim;
ALTER TABLE claim;
ALTER TABLE event_local ON CLUSTER 'main';
ALTER TABLE event ON CLUSTER 'main';
ALTER TABLE event_local ON CLUSTER 'main';
ALTER TABLE event ON CLUSTER 'main';
ALTER TABLE event_local ON CLUSTER 'main';
ALTER TABLE event ON CLUSTER 'main';
ALTER TABLE account_event_local ON CLUSTER 'main';
ALTER TABLE account_event ON CLUSTER 'main';
ALTER TABLE account_event_local ON CLUSTER 'main';
ALTER TABLE account_event ON CLUSTER 'main';
ALTER TABLE account_event_local ON CLUSTER 'main';
ALTER TABLE account_event ON CLUSTER 'main';
ALTER TABLE account_event_local ON CLUSTER 'main';
ALTER TABLE account_event ON CLUSTER 'main';
ALTER TABLE snapshot;
ALTER TABLE snapshot;
CREATE TABLE IF NOT EXISTS flash_loan_volume ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}');
INSERT INTO observation (history, asset_id, observed_at, value, version);
DROP TABLE IF EXISTS flash_loan_volume ON CLUSTER 'main' SYNC;
CREATE TABLE IF NOT EXISTS doubt ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}', version);
ALTER TABLE position_summary;
ALTER TABLE position_local ON CLUSTER 'main';
ALTER TABLE position ON CLUSTER 'main';
ALTER TABLE market_lend;
ALTER TABLE position_local ON CLUSTER 'main';
ALTER TABLE position ON CLUSTER 'main';
ALTER TABLE position_local ON CLUSTER 'main';
ALTER TABLE position ON CLUSTER 'main';
ALTER TABLE market_lend;
ALTER TABLE market_lend;
ALTER TABLE market_lend;
ALTER TABLE market_collateral;
ALTER TABLE market_collateral;
ALTER TABLE market_debt;
ALTER TABLE market_debt;
ALTER TABLE snapshot;
ALTER TABLE snapshot;
CREATE TABLE IF NOT EXISTS loss ON CLUSTER 'main'
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}', version);
ALTER TABLE observation_local ON CLUSTER 'main';
ALTER TABLE observation ON CLUSTER 'main';
ALTER TABLE observation_local ON CLUSTER 'main';
ALTER TABLE observation ON CLUSTER 'main';
ALTER TABLE cell_local ON CLUSTER 'main';
ALTER TABLE cell ON CLUSTER 'main';
ALTER TABLE cell_local ON CLUSTER 'main';
ALTER TABLE cell ON CLUSTER 'main';
ALTER TABLE cell_local ON CLUSTER 'main';
ALTER TABLE cell ON CLUSTER 'main';
ALTER TABLE cell_local ON CLUSTER 'main';
ALTER TABLE cell ON CLUSTER 'main';
ALTER TABLE cell_local ON CLUSTER 'main';
ALTER TABLE cell ON CLUSTER 'main';
ALTER TABLE asset;
ALTER TABLE asset;
CREATE TABLE IF NOT EXISTS asset_definition ON CLUSTER 'main' AS asset
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}');
INSERT INTO asset_definition SELECT * FROM asset;
CREATE TABLE IF NOT EXISTS correction_progress ON CLUSTER 'main' AS correction
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}', heard_at);
INSERT INTO correction_progress SELECT * FROM correction;
ALTER TABLE doubt;
ALTER TABLE cell_local ON CLUSTER 'main';
ALTER TABLE cell ON CLUSTER 'main';
DROP TABLE IF EXISTS asset ON CLUSTER 'main' SYNC;
DROP TABLE IF EXISTS correction ON CLUSTER 'main' SYNC;
DROP VIEW IF EXISTS doubts ON CLUSTER 'main';
DROP VIEW IF EXISTS doubts_since ON CLUSTER 'main';
DROP TABLE IF EXISTS event_local ON CLUSTER 'main' SYNC;
DROP TABLE IF EXISTS event ON CLUSTER 'main' SYNC;
DROP VIEW IF EXISTS account_events ON CLUSTER 'main';
CREATE OR REPLACE VIEW price ON CLUSTER 'main';
CREATE OR REPLACE VIEW lend_rate ON CLUSTER 'main';
CREATE OR REPLACE VIEW borrow_rate ON CLUSTER 'main';
CREATE OR REPLACE VIEW loans_originated ON CLUSTER 'main';
CREATE OR REPLACE VIEW liquidations ON CLUSTER 'main';
CREATE OR REPLACE VIEW deposits_usd ON CLUSTER 'main';
CREATE OR REPLACE VIEW collateral_usd ON CLUSTER 'main';
CREATE OR REPLACE VIEW debt_usd ON CLUSTER 'main';
CREATE OR REPLACE VIEW utilization ON CLUSTER 'main';
CREATE OR REPLACE VIEW all_assets ON CLUSTER 'main';
CREATE OR REPLACE VIEW assets ON CLUSTER 'main';
CREATE OR REPLACE VIEW asset_line ON CLUSTER 'main';
CREATE OR REPLACE VIEW price_at ON CLUSTER 'main';
CREATE OR REPLACE VIEW price_now ON CLUSTER 'main';
CREATE OR REPLACE VIEW events ON CLUSTER 'main';
CREATE OR REPLACE VIEW loan ON CLUSTER 'main';
CREATE OR REPLACE VIEW market_now ON CLUSTER 'main';
CREATE OR REPLACE VIEW market ON CLUSTER 'main';
CREATE OR REPLACE VIEW market_hour ON CLUSTER 'main';
CREATE OR REPLACE VIEW market_day ON CLUSTER 'main';
CREATE OR REPLACE VIEW position_at ON CLUSTER 'main';
CREATE OR REPLACE VIEW position_now ON CLUSTER 'main';
CREATE OR REPLACE VIEW lender ON CLUSTER 'main';
CREATE OR REPLACE VIEW account_item_at ON CLUSTER 'main';
CREATE OR REPLACE VIEW account_at ON CLUSTER 'main';
CREATE OR REPLACE VIEW account ON CLUSTER 'main';
CREATE OR REPLACE VIEW borrower ON CLUSTER 'main';
CREATE OR REPLACE VIEW account_value ON CLUSTER 'main';
CREATE OR REPLACE VIEW account_risk ON CLUSTER 'main';
CREATE OR REPLACE VIEW risk_ladder ON CLUSTER 'main';
CREATE OR REPLACE VIEW corrections ON CLUSTER 'main';
CREATE OR REPLACE VIEW anomalies_since ON CLUSTER 'main';
CREATE OR REPLACE VIEW anomalies ON CLUSTER 'main';
CREATE OR REPLACE VIEW account_history ON CLUSTER 'main';
CREATE OR REPLACE VIEW flash_loans ON CLUSTER 'main';
CREATE OR REPLACE VIEW tvl ON CLUSTER 'main';
CREATE OR REPLACE VIEW net_tvl ON CLUSTER 'main';
CREATE OR REPLACE VIEW debt_at_risk ON CLUSTER 'main';
CREATE OR REPLACE VIEW accounts_at_risk ON CLUSTER 'main';
CREATE OR REPLACE VIEW liquidatable_debt ON CLUSTER 'main';
CREATE OR REPLACE VIEW bad_debt ON CLUSTER 'main';
CREATE OR REPLACE VIEW totals ON CLUSTER 'main';
CREATE OR REPLACE VIEW price_hourly ON CLUSTER 'main';
CREATE OR REPLACE VIEW price_daily ON CLUSTER 'main';
CREATE OR REPLACE VIEW lend_rate_hourly ON CLUSTER 'main';
CREATE OR REPLACE VIEW lend_rate_daily ON CLUSTER 'main';
CREATE OR REPLACE VIEW borrow_rate_hourly ON CLUSTER 'main';
CREATE OR REPLACE VIEW borrow_rate_daily ON CLUSTER 'main';
EXCHANGE TABLES `analytics`.snapshot AND `analytics_restore_1`.snapshot ON CLUSTER 'main';
CREATE TABLE IF NOT EXISTS snapshot_staging_1 ON CLUSTER 'main' AS snapshot;
CREATE TABLE IF NOT EXISTS observation_staging_1_local ON CLUSTER 'main' AS observation_local;
CREATE TABLE IF NOT EXISTS observation_staging_1 ON CLUSTER 'main' AS observation_staging_1_local
ENGINE = Distributed('main', 'analytics', 'observation_staging_1_local', cityHash64(asset_id));
DROP TABLE IF EXISTS snapshot_staging_1, observation_staging_1_local ON CLUSTER 'main' SYNC;
DROP TABLE IF EXISTS snapshot_staging_1, observation_staging_1 ON CLUSTER 'main' SYNC;
ALTER TABLE observation_local ON CLUSTER 'main' ADD COLUMN IF NOT EXISTS note String COMMENT 'As a migration may';
ALTER TABLE observation ON CLUSTER 'main' ADD COLUMN IF NOT EXISTS note String COMMENT 'As a migration may';
DELETE FROM observation_local ON CLUSTER 'main' WHERE (history, asset_id, observed_at) IN (SELECT history, asset_id, observed_at FROM observation_staging_1_removed_local) AND version < 1 SETTINGS lightweight_deletes_sync = 2;
DELETE FROM account_event_local ON CLUSTER 'main' WHERE brought_by = 'source' AND version < 1 AND (SELECT count() FROM snapshot_staging_1 WHERE kind IN ('-job', '-backfill')) > 0 AND at > (SELECT max(at) FROM snapshot WHERE family = 'loans' AND kind IN ('job', 'backfill')) SETTINGS lightweight_deletes_sync = 2, mutations_execute_subqueries_on_initiator = 1;
DELETE FROM cell_local ON CLUSTER 'main' WHERE (history, width, asset_id, cell) IN ( SELECT history, c.1, asset_id, c.2 FROM observation_staging_1_removed_local ARRAY JOIN [ (CAST('quarter', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfFifteenMinutes(observed_at)), (CAST('day', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfDay(observed_at)), (CAST('month', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toDateTime(toStartOfMonth(observed_at), 'UTC')) ] AS c ) AND (history, width, asset_id, cell) NOT IN ( SELECT DISTINCT history, c.1, asset_id, c.2 FROM observation_local ARRAY JOIN [ (CAST('quarter', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfFifteenMinutes(observed_at)), (CAST('day', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfDay(observed_at)), (CAST('month', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toDateTime(toStartOfMonth(observed_at), 'UTC')) ] AS c WHERE (history, asset_id) IN (SELECT history, asset_id FROM observation_staging_1_removed_local) AND toYYYYMM(observed_at) IN (SELECT toYYYYMM(observed_at) FROM observation_staging_1_removed_local) ) SETTINGS lightweight_deletes_sync = 2;
CREATE SETTINGS PROFILE IF NOT EXISTS analytics_researcher ON CLUSTER 'main';
ALTER SETTINGS PROFILE analytics_researcher ON CLUSTER 'main' SETTINGS;
CREATE USER IF NOT EXISTS `ann-b` ON CLUSTER 'main' IDENTIFIED WITH sha256_hash BY '00';
GRANT ON CLUSTER 'main' SELECT ON *.* TO `ann-b` WITH REPLACE OPTION;
GRANT ON CLUSTER 'main' SELECT ON system.parts TO `ann-b`;
GRANT ON CLUSTER 'main' SELECT ON system.processes TO `ann-b`;

-- A database of engine Replicated
--   deduplicate_blocks_in_dependent_materialized_views = 1
--   distributed_ddl_output_mode = throw_only_active
--   distributed_ddl_task_timeout = 15
--   insert_quorum = auto
--   insert_quorum_parallel = 0
--   insert_quorum_timeout = 20000
--   max_partitions_per_insert_block = 0
--   select_sequential_consistency = 1

CREATE TABLE IF NOT EXISTS schema_migration
ENGINE = ReplicatedReplacingMergeTree ORDER BY number;
CREATE TABLE IF NOT EXISTS snapshot
ENGINE = ReplicatedReplacingMergeTree(version)
SETTINGS index_granularity = 256;
CREATE TABLE IF NOT EXISTS snapshot_head
ENGINE = ReplicatedAggregatingMergeTree;
CREATE MATERIALIZED VIEW IF NOT EXISTS snapshot_head_view TO snapshot_head;
CREATE TABLE IF NOT EXISTS claim
ENGINE = ReplicatedReplacingMergeTree
SETTINGS non_replicated_deduplication_window = 100;
CREATE TABLE IF NOT EXISTS rewrite
ENGINE = ReplicatedAggregatingMergeTree;
CREATE TABLE IF NOT EXISTS job_run
ENGINE = ReplicatedReplacingMergeTree(heard_at);
CREATE TABLE IF NOT EXISTS observation
ENGINE = ReplicatedReplacingMergeTree(version);
CREATE TABLE IF NOT EXISTS cell
ENGINE = ReplicatedReplacingMergeTree(version);
CREATE TABLE IF NOT EXISTS asset
ENGINE = ReplicatedReplacingMergeTree;
CREATE TABLE IF NOT EXISTS market_lend
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS market_collateral
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS market_debt
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS market_config
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS market_price
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS ptoken_state
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS ptoken_pool
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS unlock_arrangement
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS position
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 256;
CREATE TABLE IF NOT EXISTS position_digest
ENGINE = ReplicatedReplacingMergeTree(version);
CREATE TABLE IF NOT EXISTS position_summary
ENGINE = ReplicatedReplacingMergeTree;
CREATE TABLE IF NOT EXISTS event
ENGINE = ReplicatedReplacingMergeTree(version);
CREATE TABLE IF NOT EXISTS account_event
ENGINE = ReplicatedReplacingMergeTree(version)
SETTINGS index_granularity = 256, primary_key_ratio_of_unique_prefix_values_to_skip_suffix_columns = 1;
CREATE TABLE IF NOT EXISTS flash_loan_volume
ENGINE = ReplicatedReplacingMergeTree;
CREATE TABLE IF NOT EXISTS swap_route
ENGINE = ReplicatedReplacingMergeTree
SETTINGS index_granularity = 1024;
ALTER TABLE market_lend;
ALTER TABLE unlock_arrangement;
ALTER TABLE snapshot;
CREATE TABLE IF NOT EXISTS correction
ENGINE = ReplicatedReplacingMergeTree(heard_at);
ALTER TABLE snapshot;
ALTER TABLE asset;
ALTER TABLE asset;
ALTER TABLE claim;
ALTER TABLE claim;
ALTER TABLE event;
ALTER TABLE event;
ALTER TABLE event;
ALTER TABLE account_event;
ALTER TABLE account_event;
ALTER TABLE account_event;
ALTER TABLE account_event;
ALTER TABLE snapshot;
ALTER TABLE snapshot;
CREATE TABLE IF NOT EXISTS flash_loan_volume
ENGINE = ReplicatedReplacingMergeTree;
INSERT INTO observation (history, asset_id, observed_at, value, version);
DROP TABLE IF EXISTS flash_loan_volume SYNC;
CREATE TABLE IF NOT EXISTS doubt
ENGINE = ReplicatedReplacingMergeTree(version);
ALTER TABLE position_summary;
ALTER TABLE position;
ALTER TABLE market_lend;
ALTER TABLE position;
ALTER TABLE position;
ALTER TABLE market_lend;
ALTER TABLE market_lend;
ALTER TABLE market_lend;
ALTER TABLE market_collateral;
ALTER TABLE market_collateral;
ALTER TABLE market_debt;
ALTER TABLE market_debt;
ALTER TABLE snapshot;
ALTER TABLE snapshot;
CREATE TABLE IF NOT EXISTS loss
ENGINE = ReplicatedReplacingMergeTree(version);
ALTER TABLE observation;
ALTER TABLE observation;
ALTER TABLE cell;
ALTER TABLE cell;
ALTER TABLE cell;
ALTER TABLE cell;
ALTER TABLE cell;
ALTER TABLE asset;
ALTER TABLE asset;
CREATE TABLE IF NOT EXISTS asset_definition AS asset
ENGINE = ReplicatedReplacingMergeTree;
INSERT INTO asset_definition SELECT * FROM asset;
CREATE TABLE IF NOT EXISTS correction_progress AS correction
ENGINE = ReplicatedReplacingMergeTree(heard_at);
INSERT INTO correction_progress SELECT * FROM correction;
ALTER TABLE doubt;
ALTER TABLE cell;
DROP TABLE IF EXISTS asset SYNC;
DROP TABLE IF EXISTS correction SYNC;
DROP VIEW IF EXISTS doubts;
DROP VIEW IF EXISTS doubts_since;
DROP TABLE IF EXISTS event SYNC;
DROP VIEW IF EXISTS account_events;
CREATE OR REPLACE VIEW price;
CREATE OR REPLACE VIEW lend_rate;
CREATE OR REPLACE VIEW borrow_rate;
CREATE OR REPLACE VIEW loans_originated;
CREATE OR REPLACE VIEW liquidations;
CREATE OR REPLACE VIEW deposits_usd;
CREATE OR REPLACE VIEW collateral_usd;
CREATE OR REPLACE VIEW debt_usd;
CREATE OR REPLACE VIEW utilization;
CREATE OR REPLACE VIEW all_assets;
CREATE OR REPLACE VIEW assets;
CREATE OR REPLACE VIEW asset_line;
CREATE OR REPLACE VIEW price_at;
CREATE OR REPLACE VIEW price_now;
CREATE OR REPLACE VIEW events;
CREATE OR REPLACE VIEW loan;
CREATE OR REPLACE VIEW market_now;
CREATE OR REPLACE VIEW market;
CREATE OR REPLACE VIEW market_hour;
CREATE OR REPLACE VIEW market_day;
CREATE OR REPLACE VIEW position_at;
CREATE OR REPLACE VIEW position_now;
CREATE OR REPLACE VIEW lender;
CREATE OR REPLACE VIEW account_item_at;
CREATE OR REPLACE VIEW account_at;
CREATE OR REPLACE VIEW account;
CREATE OR REPLACE VIEW borrower;
CREATE OR REPLACE VIEW account_value;
CREATE OR REPLACE VIEW account_risk;
CREATE OR REPLACE VIEW risk_ladder;
CREATE OR REPLACE VIEW corrections;
CREATE OR REPLACE VIEW anomalies_since;
CREATE OR REPLACE VIEW anomalies;
CREATE OR REPLACE VIEW account_history;
CREATE OR REPLACE VIEW flash_loans;
CREATE OR REPLACE VIEW tvl;
CREATE OR REPLACE VIEW net_tvl;
CREATE OR REPLACE VIEW debt_at_risk;
CREATE OR REPLACE VIEW accounts_at_risk;
CREATE OR REPLACE VIEW liquidatable_debt;
CREATE OR REPLACE VIEW bad_debt;
CREATE OR REPLACE VIEW totals;
CREATE OR REPLACE VIEW price_hourly;
CREATE OR REPLACE VIEW price_daily;
CREATE OR REPLACE VIEW lend_rate_hourly;
CREATE OR REPLACE VIEW lend_rate_daily;
CREATE OR REPLACE VIEW borrow_rate_hourly;
CREATE OR REPLACE VIEW borrow_rate_daily;
EXCHANGE TABLES `analytics`.snapshot AND `analytics_restore_1`.snapshot;
CREATE TABLE IF NOT EXISTS snapshot_staging_1 AS snapshot;
CREATE TABLE IF NOT EXISTS observation_staging_1 AS observation;
DROP TABLE IF EXISTS snapshot_staging_1, observation_staging_1 SYNC;
ALTER TABLE observation ADD COLUMN IF NOT EXISTS note String COMMENT 'As a migration may';
DELETE FROM observation WHERE (history, asset_id, observed_at) IN (SELECT history, asset_id, observed_at FROM observation_staging_1_removed) AND version < 1 SETTINGS lightweight_deletes_sync = 2;
DELETE FROM account_event WHERE brought_by = 'source' AND version < 1 AND (SELECT count() FROM snapshot_staging_1 WHERE kind IN ('-job', '-backfill')) > 0 AND at > (SELECT max(at) FROM snapshot WHERE family = 'loans' AND kind IN ('job', 'backfill')) SETTINGS lightweight_deletes_sync = 2, mutations_execute_subqueries_on_initiator = 1;
DELETE FROM cell WHERE (history, width, asset_id, cell) IN ( SELECT history, c.1, asset_id, c.2 FROM observation_staging_1_removed ARRAY JOIN [ (CAST('quarter', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfFifteenMinutes(observed_at)), (CAST('day', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfDay(observed_at)), (CAST('month', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toDateTime(toStartOfMonth(observed_at), 'UTC')) ] AS c ) AND (history, width, asset_id, cell) NOT IN ( SELECT DISTINCT history, c.1, asset_id, c.2 FROM observation ARRAY JOIN [ (CAST('quarter', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfFifteenMinutes(observed_at)), (CAST('day', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfDay(observed_at)), (CAST('month', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toDateTime(toStartOfMonth(observed_at), 'UTC')) ] AS c WHERE (history, asset_id) IN (SELECT history, asset_id FROM observation_staging_1_removed) AND toYYYYMM(observed_at) IN (SELECT toYYYYMM(observed_at) FROM observation_staging_1_removed) ) SETTINGS lightweight_deletes_sync = 2;
CREATE SETTINGS PROFILE IF NOT EXISTS analytics_researcher;
ALTER SETTINGS PROFILE analytics_researcher SETTINGS;
CREATE USER IF NOT EXISTS `ann-b` IDENTIFIED WITH sha256_hash BY '00';
GRANT SELECT ON *.* TO `ann-b` WITH REPLACE OPTION;
GRANT SELECT ON system.parts TO `ann-b`;
GRANT SELECT ON system.processes TO `ann-b`;

-- ClickHouse Cloud
--   select_sequential_consistency = 1

CREATE TABLE IF NOT EXISTS schema_migration
ENGINE = ReplacingMergeTree ORDER BY number;
CREATE TABLE IF NOT EXISTS snapshot
ENGINE = ReplacingMergeTree(version)
SETTINGS index_granularity = 256;
CREATE TABLE IF NOT EXISTS snapshot_head
ENGINE = AggregatingMergeTree;
CREATE MATERIALIZED VIEW IF NOT EXISTS snapshot_head_view TO snapshot_head;
CREATE TABLE IF NOT EXISTS claim
ENGINE = ReplacingMergeTree
SETTINGS non_replicated_deduplication_window = 100;
CREATE TABLE IF NOT EXISTS rewrite
ENGINE = AggregatingMergeTree;
CREATE TABLE IF NOT EXISTS job_run
ENGINE = ReplacingMergeTree(heard_at);
CREATE TABLE IF NOT EXISTS observation
ENGINE = ReplacingMergeTree(version);
CREATE TABLE IF NOT EXISTS cell
ENGINE = ReplacingMergeTree(version);
CREATE TABLE IF NOT EXISTS asset
ENGINE = ReplacingMergeTree;
CREATE TABLE IF NOT EXISTS market_lend
ENGINE = ReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS market_collateral
ENGINE = ReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS market_debt
ENGINE = ReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS market_config
ENGINE = ReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS market_price
ENGINE = ReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS ptoken_state
ENGINE = ReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS ptoken_pool
ENGINE = ReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS unlock_arrangement
ENGINE = ReplacingMergeTree
SETTINGS index_granularity = 1024;
CREATE TABLE IF NOT EXISTS position
ENGINE = ReplacingMergeTree
SETTINGS index_granularity = 256;
CREATE TABLE IF NOT EXISTS position_digest
ENGINE = ReplacingMergeTree(version);
CREATE TABLE IF NOT EXISTS position_summary
ENGINE = ReplacingMergeTree;
CREATE TABLE IF NOT EXISTS event
ENGINE = ReplacingMergeTree(version);
CREATE TABLE IF NOT EXISTS account_event
ENGINE = ReplacingMergeTree(version)
SETTINGS index_granularity = 256, primary_key_ratio_of_unique_prefix_values_to_skip_suffix_columns = 1;
CREATE TABLE IF NOT EXISTS flash_loan_volume
ENGINE = ReplacingMergeTree;
CREATE TABLE IF NOT EXISTS swap_route
ENGINE = ReplacingMergeTree
SETTINGS index_granularity = 1024;
ALTER TABLE market_lend;
ALTER TABLE unlock_arrangement;
ALTER TABLE snapshot;
CREATE TABLE IF NOT EXISTS correction
ENGINE = ReplacingMergeTree(heard_at);
ALTER TABLE snapshot;
ALTER TABLE asset;
ALTER TABLE asset;
ALTER TABLE claim;
ALTER TABLE claim;
ALTER TABLE event;
ALTER TABLE event;
ALTER TABLE event;
ALTER TABLE account_event;
ALTER TABLE account_event;
ALTER TABLE account_event;
ALTER TABLE account_event;
ALTER TABLE snapshot;
ALTER TABLE snapshot;
CREATE TABLE IF NOT EXISTS flash_loan_volume
ENGINE = ReplacingMergeTree;
INSERT INTO observation (history, asset_id, observed_at, value, version);
DROP TABLE IF EXISTS flash_loan_volume SYNC;
CREATE TABLE IF NOT EXISTS doubt
ENGINE = ReplacingMergeTree(version);
ALTER TABLE position_summary;
ALTER TABLE position;
ALTER TABLE market_lend;
ALTER TABLE position;
ALTER TABLE position;
ALTER TABLE market_lend;
ALTER TABLE market_lend;
ALTER TABLE market_lend;
ALTER TABLE market_collateral;
ALTER TABLE market_collateral;
ALTER TABLE market_debt;
ALTER TABLE market_debt;
ALTER TABLE snapshot;
ALTER TABLE snapshot;
CREATE TABLE IF NOT EXISTS loss
ENGINE = ReplacingMergeTree(version);
ALTER TABLE observation;
ALTER TABLE observation;
ALTER TABLE cell;
ALTER TABLE cell;
ALTER TABLE cell;
ALTER TABLE cell;
ALTER TABLE cell;
ALTER TABLE asset;
ALTER TABLE asset;
CREATE TABLE IF NOT EXISTS asset_definition AS asset
ENGINE = ReplacingMergeTree;
INSERT INTO asset_definition SELECT * FROM asset;
CREATE TABLE IF NOT EXISTS correction_progress AS correction
ENGINE = ReplacingMergeTree(heard_at);
INSERT INTO correction_progress SELECT * FROM correction;
ALTER TABLE doubt;
ALTER TABLE cell;
DROP TABLE IF EXISTS asset SYNC;
DROP TABLE IF EXISTS correction SYNC;
DROP VIEW IF EXISTS doubts;
DROP VIEW IF EXISTS doubts_since;
DROP TABLE IF EXISTS event SYNC;
DROP VIEW IF EXISTS account_events;
CREATE OR REPLACE VIEW price;
CREATE OR REPLACE VIEW lend_rate;
CREATE OR REPLACE VIEW borrow_rate;
CREATE OR REPLACE VIEW loans_originated;
CREATE OR REPLACE VIEW liquidations;
CREATE OR REPLACE VIEW deposits_usd;
CREATE OR REPLACE VIEW collateral_usd;
CREATE OR REPLACE VIEW debt_usd;
CREATE OR REPLACE VIEW utilization;
CREATE OR REPLACE VIEW all_assets;
CREATE OR REPLACE VIEW assets;
CREATE OR REPLACE VIEW asset_line;
CREATE OR REPLACE VIEW price_at;
CREATE OR REPLACE VIEW price_now;
CREATE OR REPLACE VIEW events;
CREATE OR REPLACE VIEW loan;
CREATE OR REPLACE VIEW market_now;
CREATE OR REPLACE VIEW market;
CREATE OR REPLACE VIEW market_hour;
CREATE OR REPLACE VIEW market_day;
CREATE OR REPLACE VIEW position_at;
CREATE OR REPLACE VIEW position_now;
CREATE OR REPLACE VIEW lender;
CREATE OR REPLACE VIEW account_item_at;
CREATE OR REPLACE VIEW account_at;
CREATE OR REPLACE VIEW account;
CREATE OR REPLACE VIEW borrower;
CREATE OR REPLACE VIEW account_value;
CREATE OR REPLACE VIEW account_risk;
CREATE OR REPLACE VIEW risk_ladder;
CREATE OR REPLACE VIEW corrections;
CREATE OR REPLACE VIEW anomalies_since;
CREATE OR REPLACE VIEW anomalies;
CREATE OR REPLACE VIEW account_history;
CREATE OR REPLACE VIEW flash_loans;
CREATE OR REPLACE VIEW tvl;
CREATE OR REPLACE VIEW net_tvl;
CREATE OR REPLACE VIEW debt_at_risk;
CREATE OR REPLACE VIEW accounts_at_risk;
CREATE OR REPLACE VIEW liquidatable_debt;
CREATE OR REPLACE VIEW bad_debt;
CREATE OR REPLACE VIEW totals;
CREATE OR REPLACE VIEW price_hourly;
CREATE OR REPLACE VIEW price_daily;
CREATE OR REPLACE VIEW lend_rate_hourly;
CREATE OR REPLACE VIEW lend_rate_daily;
CREATE OR REPLACE VIEW borrow_rate_hourly;
CREATE OR REPLACE VIEW borrow_rate_daily;
EXCHANGE TABLES `analytics`.snapshot AND `analytics_restore_1`.snapshot;
CREATE TABLE IF NOT EXISTS snapshot_staging_1 AS snapshot;
CREATE TABLE IF NOT EXISTS observation_staging_1 AS observation;
DROP TABLE IF EXISTS snapshot_staging_1, observation_staging_1 SYNC;
ALTER TABLE observation ADD COLUMN IF NOT EXISTS note String COMMENT 'As a migration may';
DELETE FROM observation WHERE (history, asset_id, observed_at) IN (SELECT history, asset_id, observed_at FROM observation_staging_1_removed) AND version < 1 SETTINGS lightweight_deletes_sync = 2;
DELETE FROM account_event WHERE brought_by = 'source' AND version < 1 AND (SELECT count() FROM snapshot_staging_1 WHERE kind IN ('-job', '-backfill')) > 0 AND at > (SELECT max(at) FROM snapshot WHERE family = 'loans' AND kind IN ('job', 'backfill')) SETTINGS lightweight_deletes_sync = 2, mutations_execute_subqueries_on_initiator = 1;
DELETE FROM cell WHERE (history, width, asset_id, cell) IN ( SELECT history, c.1, asset_id, c.2 FROM observation_staging_1_removed ARRAY JOIN [ (CAST('quarter', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfFifteenMinutes(observed_at)), (CAST('day', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfDay(observed_at)), (CAST('month', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toDateTime(toStartOfMonth(observed_at), 'UTC')) ] AS c ) AND (history, width, asset_id, cell) NOT IN ( SELECT DISTINCT history, c.1, asset_id, c.2 FROM observation ARRAY JOIN [ (CAST('quarter', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfFifteenMinutes(observed_at)), (CAST('day', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfDay(observed_at)), (CAST('month', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toDateTime(toStartOfMonth(observed_at), 'UTC')) ] AS c WHERE (history, asset_id) IN (SELECT history, asset_id FROM observation_staging_1_removed) AND toYYYYMM(observed_at) IN (SELECT toYYYYMM(observed_at) FROM observation_staging_1_removed) ) SETTINGS lightweight_deletes_sync = 2;
CREATE SETTINGS PROFILE IF NOT EXISTS analytics_researcher;
ALTER SETTINGS PROFILE analytics_researcher SETTINGS;
CREATE USER IF NOT EXISTS `ann-b` IDENTIFIED WITH sha256_hash BY '00';
GRANT SELECT ON *.* TO `ann-b` WITH REPLACE OPTION;
GRANT SELECT ON system.parts TO `ann-b`;
GRANT SELECT ON system.processes TO `ann-b`;
