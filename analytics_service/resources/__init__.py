"""Falcon resources, a module for each group of paths."""
