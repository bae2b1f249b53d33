-- Which rows does a table have for a snapshot? Of several rows for one key, the one with the greatest version.
SELECT {columns}
FROM {table:Identifier}
WHERE observed_at = toDateTime({at:UInt32}, 'UTC')
  AND {only}
ORDER BY {key}, version DESC
LIMIT 1 BY {key}
