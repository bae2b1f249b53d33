"""Scheduled jobs: each says what to take from a source; `runner` runs one, `scheduler` runs all at their instants."""
