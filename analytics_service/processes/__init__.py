"""The supervisor of child processes: starts, watches, restarts and stops them."""
