-- Deletes the definitions of assets that a rewrite takes out.
DELETE FROM asset_definition
WHERE id IN (SELECT id FROM {staged} WHERE kind = '')
  AND version < {version}
SETTINGS lightweight_deletes_sync = 2
