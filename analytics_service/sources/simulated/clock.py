"""The launch of the simulated protocol, and lengths of time. Everything is in seconds; instants are unix seconds."""

# 2025-01-01: the protocol opens, and the first loan is taken.
LAUNCH = 1_735_689_600
MINUTE = 60
HOUR = 3_600
DAY = 86_400
