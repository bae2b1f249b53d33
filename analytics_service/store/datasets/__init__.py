"""What the store has of each dataset: tables, readers, and how their rows are written."""
