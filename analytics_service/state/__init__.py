"""The newest snapshot of everything, and snapshots of the past. Each part is read on first use."""
