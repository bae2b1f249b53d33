"""The domain: records and arithmetic as pure functions. No I/O, no clock, no binary floats."""
