-- How many rows does a table have that belong to a backup, repeated ones counted once?
SELECT count() AS rows
FROM {table:Identifier} FINAL
WHERE {only}
SETTINGS max_threads = 2, do_not_merge_across_partitions_select_final = 1
