-- Lists the runs of a staging table in the ledger. A run takes the place of one like it: an import that of an earlier one
-- of the same files which ended with the same observation.
INSERT INTO snapshot
    (family, at, kind, first_observed_at, last_observed_at, rows, source, version, simulated, files)
SELECT
    family,
    at,
    kind,
    first_observed_at,
    last_observed_at,
    rows,
    source,
    version,
    simulated,
    if(kind = 'import', source, '')
FROM {table:Identifier} FINAL
