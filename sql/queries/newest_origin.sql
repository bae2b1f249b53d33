-- Where did the newest run of a family take its rows from, apart from some versions? The empty text stands for files.
SELECT if(kind = 'import', '', source) AS source, simulated
FROM snapshot
WHERE family = {family:String}
  AND version NOT IN {without:Array(UInt64)}
ORDER BY version DESC
LIMIT 1
