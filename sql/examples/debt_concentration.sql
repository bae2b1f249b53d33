-- How concentrated is the debt of each asset? Share of the ten largest borrowers, and Herfindahl-Hirschman index (HHI).
-- The HHI is the sum of squared shares: 1 if one address owes everything, 1/n if n addresses owe the same.
SELECT asset_id, symbol, count() AS borrowers, sum(owed) AS debt, round(sumIf(share, place <= 10), 4) AS top_10,
    round(sum(share * share), 4) AS hhi
FROM
(
    SELECT asset_id, symbol, sum(units) AS owed,
        owed / sum(owed) OVER (PARTITION BY asset_id) AS share,
        row_number() OVER (PARTITION BY asset_id ORDER BY owed DESC) AS place
    FROM position_now
    WHERE kind = 'debt' AND units > 0
    GROUP BY asset_id, symbol, address
)
GROUP BY asset_id, symbol
ORDER BY hhi DESC, asset_id;
