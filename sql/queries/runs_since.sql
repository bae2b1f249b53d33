-- How many runs of a family have versions after one and up to another, and what is their oldest observation? Rows that show
-- definitions bring none.
SELECT
    uniqExact(at, kind, files, version) AS runs,
    min(if(kind = 'assets', last_observed_at, first_observed_at)) AS first_observed_at
FROM snapshot
WHERE family = {family:String}
  AND version > {after:UInt64}
  AND version <= {until:UInt64}
