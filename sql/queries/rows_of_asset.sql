-- How many rows of a table are of an asset? A column of the table has ids of assets.
SELECT count() AS rows
FROM {table:Identifier} FINAL
WHERE {column:Identifier} = {asset_id:String}
