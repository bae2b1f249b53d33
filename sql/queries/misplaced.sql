-- Does a shard have rows of a table that belong to another? The keys of some are enough: after a change of the shards
-- most of them lie elsewhere. `slots` has a shard as often as its weight says.
SELECT count() > 0 AS misplaced
FROM
(
    SELECT _shard_num AS shard, key
    FROM cluster({cluster}, view(SELECT DISTINCT {key} AS key FROM {database}.{table}_local LIMIT 10000))
)
WHERE shard != ({slots:Array(UInt32)})[cityHash64(key) % length({slots:Array(UInt32)}) + 1]
