"""Sources of snapshots."""
