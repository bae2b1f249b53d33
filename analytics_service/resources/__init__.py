"""Falcon resources, one file per path family."""
