"""Files of a stated shape into the store: `files` finds and unpacks them, `readers` gives their rows as text,
`column_mapping` says which column is what, `time_parsing`, `numbers` and `asset_names` parse values, and `timestamps`
says from which second a value holds. `history` does this for the rows of a history, `merge` sorts them, and
`publication` brings them into the store."""
