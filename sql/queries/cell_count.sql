-- How many quarter hours of a range have observations, over all series? No more than `most` are counted.
SELECT count() AS cells
FROM
(
    SELECT 1
    FROM cell FINAL
    WHERE history = {history:String}
      AND width = 'quarter'
      AND cell >= toDateTime({since:UInt32}, 'UTC')
      AND cell < toDateTime({until:UInt32}, 'UTC')
    LIMIT {most:UInt64}
)
