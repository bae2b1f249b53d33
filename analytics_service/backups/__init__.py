"""Backups: the whole store as one file, and back."""
