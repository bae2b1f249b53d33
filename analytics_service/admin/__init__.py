"""What operators do with a whole store: back up, restore, export, remove."""
