"""A simulated protocol: the same seed and instant always give the same state. One module for each family of data."""
