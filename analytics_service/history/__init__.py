"""Histories: their buckets, their values in memory and in the store, and their pages."""
