"""Scheduled jobs, each in a module that is found by its name (see registry.py), and their runner and scheduler."""
