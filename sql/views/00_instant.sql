-- The instant that {time:String} names. Fills {instant}. A view gets a DateTime as text in the zone of the value or the
-- session, without the zone: 9 o'clock in New York would count as 9 o'clock UTC. Unix seconds have no zone. Instants more
-- than a minute ahead are rejected (rule 8.16, future snapshots).
assumeNotNull((
    SELECT given
    FROM
    (
        SELECT multiIf(
            match({time:String}, '^\\d{1,10}(\\.\\d+)?$'),
            toDateTime64(toDecimal64OrNull({time:String}, 3), 3, 'UTC'),
            match({time:String}, '^\\d{4}-\\d\\d-\\d\\d[T ]([01]\\d|2[0-3]):[0-5]\\d(:[0-5]\\d(\\.\\d+)?)?(Z|[+-][01]\\d:?[0-5]\\d)$'),
            parseDateTime64BestEffortOrNull({time:String}, 3, 'UTC'),
            NULL) AS given
    )
    WHERE NOT throwIf(given IS NULL, concat(
            'time is \'', {time:String}, '\', but must be unix seconds, such as toUnixTimestamp(now() - INTERVAL 1 DAY), or text with Z or an offset, such as 2026-03-01T12:00:00Z'))
      AND NOT throwIf(given > now64(3) + INTERVAL 60 SECOND, concat('time is \'', {time:String}, '\', which is in the future'))
)) AS instant
