"""Files of history: `files` finds and unpacks them, `opening` tells the format, `text`, `columnar` or `records` make
frames of text. `layout` says which column is what, by names or `presets`; `times` and `numerals` read values, `names`
assets; `judging` has the reasons against a row; `merging` and `publishing` bring the others into the store.
`reading` does this for histories, `event_files` for events."""
