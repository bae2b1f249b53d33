-- Claims the store for a side. Only the first of all claims is written.
INSERT INTO claim (side)
SETTINGS insert_deduplicate = 1, insert_deduplication_token = 'claim'
VALUES ({side:String})
