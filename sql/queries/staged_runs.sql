-- What will a run's rows in the ledger say?
SELECT *
FROM {table:Identifier} FINAL
