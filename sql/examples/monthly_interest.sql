-- How much interest did lenders earn and borrowers owe in each of the last 12 months, by asset, in USD? An estimate by
-- days: the rise of the redemption ratio above its maximum, times earlier deposits; earlier debt times its rate.
SELECT toStartOfMonth(observed_at) AS month, asset_id, symbol,
    round(sum(was.2 * greatest(redemption_ratio - highest, 0) / was.3), 2) AS earned_usd,
    round(sum(was.4 * was.5 * dateDiff('second', was.1, observed_at)) / 31536000, 2) AS owed_usd
FROM
(
    SELECT *, lagInFrame((observed_at, deposits * price, redemption_ratio, debt_usd, borrow_apr))
        OVER (PARTITION BY asset_id ORDER BY observed_at) AS was, max(redemption_ratio)
        OVER (PARTITION BY asset_id ORDER BY observed_at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS highest
    FROM market_day
    WHERE observed_at >= toStartOfMonth(now('UTC')) - INTERVAL 11 MONTH - INTERVAL 1 DAY AND deposits IS NOT NULL
)
WHERE observed_at >= toStartOfMonth(now('UTC')) - INTERVAL 11 MONTH AND was.1 > 0
GROUP BY month, asset_id, symbol ORDER BY month, earned_usd DESC, asset_id;
