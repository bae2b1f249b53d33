-- Which events are stored, of a range of time or with some names, and who has brought each? Of several rows for one event
-- at an instant, the one with the greatest version, unless that takes it out.
SELECT {columns}, brought_by
FROM
(
    SELECT *
    FROM account_event
    WHERE {which}
    ORDER BY version DESC
    LIMIT 1 BY address, at, uuid
)
WHERE NOT gone
