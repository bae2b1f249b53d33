"""Time-series analytics of a lending-and-borrowing protocol."""
