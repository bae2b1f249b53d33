"""The commands of `analytics-service`, a module per group."""
