-- Was a rewrite announced, and has it finished?
SELECT count() > 0 AS announced, max(finished) AS finished
FROM publication
WHERE family = {family:String}
  AND version = {version:UInt64}
