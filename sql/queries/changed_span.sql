-- Which is the first second that a rewrite changes, and which are the last observation that it adds, and the
-- last second that it changes? How many does it add, and
-- take out?
SELECT
    toUnixTimestamp(min(observed_at)) AS first,
    toUnixTimestamp(maxIf(observed_at, is_added)) AS last,
    toUnixTimestamp(max(observed_at)) AS until,
    countIf(is_added) AS added,
    countIf(NOT is_added) AS removed
FROM
(
    SELECT observed_at, true AS is_added FROM {added:Identifier}
    UNION ALL
    SELECT observed_at, false FROM {removed:Identifier}
)
