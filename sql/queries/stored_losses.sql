-- Which rows has the store lost, by family? A branch of `ledger`.
SELECT 'loss', family, l.version, 0, toDateTime(0, 'UTC'), toDateTime(0, 'UTC'), [], toUInt32(now()), losses
FROM loss AS l FINAL
