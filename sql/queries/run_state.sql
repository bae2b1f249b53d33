-- How was a run announced, as a rewrite or as one that appends, and has it finished?
SELECT 'rewrite' AS how, finished
FROM publication FINAL
WHERE family = {family:String} AND version = {version:UInt64}

UNION ALL

SELECT 'append', finished
FROM append_run FINAL
WHERE family = {family:String} AND version = {version:UInt64}
