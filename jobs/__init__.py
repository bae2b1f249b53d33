"""Scheduled jobs, a module each, with their runner and scheduler."""
