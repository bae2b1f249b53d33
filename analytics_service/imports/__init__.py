"""Imports of files of history: read, validate, stage, publish."""
