-- How much was locked at the end of each of the last 26 weeks (Monday to Sunday, UTC), and between which bounds?
SELECT toMonday(cell) AS week, argMax(t.close, t.cell) AS at_end, min(t.low) AS least, max(t.high) AS greatest
FROM cell AS t FINAL
WHERE t.history = 'tvl'
  AND t.width = 'day'
  AND t.cell >= toMonday(now('UTC')) - INTERVAL 26 WEEK
  AND t.cell < toMonday(now('UTC'))
GROUP BY week
ORDER BY week;
