"""The launch of the simulated protocol."""

# 2025-01-01, unix seconds: the protocol opens, and the first loan is taken.
LAUNCH = 1_735_689_600
