"""Tries a source, and says in plain words what is wrong with it."""
