-- Announces a rewrite, or records at once that it has finished, if its writer still holds the write lock.
INSERT INTO rewrite (family, version, what, command, rows, first_at, last_at, finished)
SELECT {family:String}, {version:UInt64}, {what:String}, {command:String}, {rows:UInt64}, {first_at:UInt32}, {last_at:UInt32},
    {finished:UInt8}
WHERE ({held})
