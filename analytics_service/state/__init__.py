"""The heads that readers are shown, views of the newest state and of past states, and the status."""
