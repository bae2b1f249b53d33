"""Response objects: each is declared once, and its variants are derived."""
