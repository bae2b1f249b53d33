-- Which cells of a width have another number of observations than what the next smaller width has of them? Those that begin
-- in a range of time and are closed, as ranges: one for each series and {span}.
SELECT
    toString(history) AS what,
    toString(asset_id) AS asset_id,
    toUnixTimestamp(min(begins_at)) AS first,
    toUnixTimestamp(max({ends_at})) AS until
FROM
(
    SELECT history, asset_id, begins_at
    FROM
    (
        {narrower}

        UNION ALL

        SELECT history, asset_id, cell AS begins_at, -toInt64({counted}) AS observations
        FROM cell FINAL
        WHERE width = {width:String}
          AND cell >= toDateTime({since:UInt32}, 'UTC') AND cell < toDateTime({until:UInt32}, 'UTC')
    )
    GROUP BY history, asset_id, begins_at
    HAVING sum(observations) != 0
)
WHERE toUnixTimestamp({ends_at}) <= transform(toString(history), {histories:Array(String)}, {ends:Array(UInt32)}, toUInt32(0))
GROUP BY history, asset_id, {span}(begins_at)
SETTINGS do_not_merge_across_partitions_select_final = 1
