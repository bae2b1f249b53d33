-- Lowers a family's head to what its runs have left; none of its numbers would fall by itself. A run that is listed at the
-- same time may be lowered, too: raise_head follows.
ALTER TABLE snapshot_head
UPDATE
    at = least(at, (SELECT at FROM ({ends}))),
    last_observed_at = least(last_observed_at, (SELECT last_observed_at FROM ({ends}))),
    sources = (SELECT sources FROM ({ends}))
WHERE family = '{family}'
SETTINGS mutations_sync = 2, mutations_execute_subqueries_on_initiator = 1
