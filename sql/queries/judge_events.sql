-- What looks wrong in events: how serious it is, what it is with … for names, and a name.
SELECT fault.1 AS level, fault.2 AS words, concat(action, ' at ', formatDateTime(time, '%FT%TZ'), fault.3) AS name
FROM events
ARRAY JOIN arrayFilter(each -> each.4, [
    ('warning', 'events: without usd, so they count in no sum: ….', '', toUInt8(usd IS NULL AND action IN ('borrow', 'liquidate', 'borrow_flash_loan'))),
    ('warning', 'events: usd is not amount times price: …. Amounts are in denom units.', concat(' ', toString(ifNull(usd, 0)), ' instead of ', toString(ifNull(units * price, 0))), toUInt8(ifNull(abs(units * price - usd) > greatest(0.01, usd / 100), false)))
]) AS fault
ORDER BY level, words, name
