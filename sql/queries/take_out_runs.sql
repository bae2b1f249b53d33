-- Deletes the rows of the ledger that a rewrite takes out, but not those that it puts in their place.
DELETE FROM snapshot
WHERE (family, at, concat('-', kind), files) IN (SELECT family, at, kind, files FROM {staged})
  AND version < {version}
  AND (family, at, kind, files, version, first_observed_at, last_observed_at, rows) NOT IN
    (SELECT family, at, kind, files, version, first_observed_at, last_observed_at, rows FROM {staged} FINAL)
SETTINGS lightweight_deletes_sync = 2
