-- Stages observations that a rewrite takes out.
INSERT INTO {removed} (history, asset_id, observed_at)
{keys}
