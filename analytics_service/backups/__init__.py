"""Backups of the whole store as a single file."""
