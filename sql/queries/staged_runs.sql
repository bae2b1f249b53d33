-- What will a run's rows in the ledger say?
SELECT family, at, kind, first_observed_at, last_observed_at, rows, source, version, simulated
FROM {table:Identifier} FINAL
