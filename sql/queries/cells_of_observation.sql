-- In which cells, by width, is an observation?
[
    (CAST('quarter', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfFifteenMinutes(observed_at)),
    (CAST('day', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toStartOfDay(observed_at)),
    (CAST('month', 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)'), toDateTime(toStartOfMonth(observed_at), 'UTC'))
]
