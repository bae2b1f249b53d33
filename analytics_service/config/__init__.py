"""Settings, what their texts may be, and the files that only their owner may read."""
