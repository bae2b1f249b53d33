"""Scheduled jobs: a module for each, found by its name (see registry.py), and what runs them."""
