"""Files of a stated shape into the store: `files` finds and unpacks them, `reading` gives their rows as text, `columns`
says which column is what, `times`, `values` and `names` parse them, `stamps` says from which second a value holds.
`history` does this for the rows of a history, `merging` sorts them, and `publishing` brings them into the store."""
