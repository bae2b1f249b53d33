-- How many runs of a family have versions after one and up to another, and what is their oldest observation?
SELECT uniqExact(at, kind, version) AS runs, min(first_observed_at) AS first_observed_at
FROM snapshot
WHERE family = {family:String}
  AND version > {after:UInt64}
  AND version <= {until:UInt64}
