"""Imports files of a stated shape: `files` finds and unpacks them, `readers` reads rows as text, `column_mapping` names
the columns, `time_parsing`, `numbers` and `asset_names` parse values, `timestamps` says from when a value counts, and
`merge` sorts rows. `history` and `events` combine these; `publication` writes the result."""
