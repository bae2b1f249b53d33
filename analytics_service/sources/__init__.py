"""Where snapshots and files of history come from."""
