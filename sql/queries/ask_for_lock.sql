-- Asks for the write lock, or releases it for good.
INSERT INTO write_lock (holder, what, family, command, released)
SELECT {holder:String}, {what:String}, {family:String}, {command:String}, {released:UInt8}
