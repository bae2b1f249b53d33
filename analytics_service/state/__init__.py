"""The newest snapshot of everything, read when it is asked for: what current-state responders see."""
