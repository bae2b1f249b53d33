-- Claims the store for a side and a source, in place of the claim that was made at an instant. Of all claims in its place
-- only the first is written.
INSERT INTO claim (side, source, claimed_at)
SETTINGS insert_deduplicate = 1, insert_deduplication_token = {token:String}
VALUES ({side:String}, {source:String}, greatest(now64(6), fromUnixTimestamp64Micro({after:Int64} + 1)))
