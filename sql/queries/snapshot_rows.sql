-- Which rows does a table have for a complete snapshot? Those of the run that the ledger lists; a run that died, or that
-- another one has overtaken, may have left others. A batch that was sent twice has its rows twice until they are merged.
SELECT {columns}
FROM {table:Identifier}
WHERE observed_at = toDateTime({at:UInt32}, 'UTC')
  AND version =
  (
      SELECT max(version)
      FROM snapshot
      WHERE family = {family:String} AND at = toDateTime({at:UInt32}, 'UTC') AND kind IN ('job', 'backfill')
  )
  AND {only}
ORDER BY {key}
LIMIT 1 BY {key}
