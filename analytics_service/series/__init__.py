"""History pages: the bucket grid, sampling rows onto it, encoding points."""
