"""Formats of history pages: each turns values into bytes, in a module of its own."""
