-- Has no other run of a family been completed since one began? Then it appends to the end that it has read.
SELECT sum(runs) = {runs:UInt64}
FROM snapshot_head
WHERE family = {family:String}
