-- Which versions of loans have values of which histories that were imported as such, or stated by a source? All others are
-- sums of events.
SELECT version, arrayJoin(if(kind = 'import', ['loans_originated', 'liquidations', 'flash_loans'], stated)) AS history
FROM snapshot
WHERE family = 'loans'
  AND ((kind = 'import' AND at = toDateTime(0, 'UTC')) OR notEmpty(stated))
