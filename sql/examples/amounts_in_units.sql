-- What were the last hundred events, in standard units?
-- Amounts are whole denom units of up to 78 digits: as text, `amount` is exact in every format; `units` is a float.
SELECT
    e.at,
    e.kind,
    e.asset_id,
    toString(e.amount) AS amount,
    toFloat64(e.amount) / exp10(a.decimals) AS units
FROM event AS e FINAL
INNER JOIN (SELECT id, argMax(decimals_denom, version) AS decimals FROM asset GROUP BY id) AS a ON a.id = e.asset_id
ORDER BY e.at DESC, e.id
LIMIT 100;
