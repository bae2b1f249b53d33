"""Rows of histories and views as files for other programs."""
