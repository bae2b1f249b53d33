"""The pages that people open in a browser: HTML, CSS and modules of our own."""
