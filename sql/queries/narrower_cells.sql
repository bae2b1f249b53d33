-- How many observations do the cells of a width have, by the start of the next wider one? A part of differing_cells.
SELECT history, asset_id, {begins_at} AS begins_at, toInt64({counted}) AS observations
FROM cell FINAL
WHERE width = {narrower_width:String}
  AND cell >= toDateTime({since:UInt32}, 'UTC') AND cell < toDateTime({until:UInt32}, 'UTC')
