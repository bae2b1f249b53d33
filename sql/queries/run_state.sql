-- Was a run announced as a rewrite, was it announced as one that appends, and is any of these unfinished?
SELECT
    countIf(announced.how = 'rewrite') > 0 AS rewrite,
    countIf(announced.how = 'append') > 0 AS append,
    countIf(announced.finished = 0) > 0 AS open
FROM
(
    SELECT 'rewrite' AS how, max(p.finished) AS finished
    FROM publication AS p
    WHERE family = {family:String} AND version = {version:UInt64}
    HAVING count() > 0

    UNION ALL

    SELECT 'append' AS how, max(a.finished) AS finished
    FROM append_run AS a
    WHERE family = {family:String} AND version = {version:UInt64}
    HAVING count() > 0
) AS announced
