"""Settings, parsers of their values, and files that only their owner may read."""
