"""Histories: buckets, values in memory and in the store, and pages."""
