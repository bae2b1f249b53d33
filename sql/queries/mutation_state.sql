-- Has a table a mutation that reads some other table: is one under way, and have all servers executed one?
SELECT
    countIf(NOT is_done) > 0 AS is_under_way,
    uniqExactIf({server}, is_done) = (SELECT count() FROM {servers}) AS is_done_everywhere
FROM {from}
WHERE database = {database:String} AND table = {table:String} AND position(command, {reading:String}) > 0
