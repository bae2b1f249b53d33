-- Has no later run begun to write the same snapshots? Its observations would replace those of an earlier one.
SELECT count() = 0
FROM {state:Identifier}
WHERE observed_at IN (SELECT toDateTime(arrayJoin({instants:Array(UInt32)}), 'UTC'))
  AND version > {version:UInt64}
