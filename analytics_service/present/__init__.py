"""Response objects: each is declared once; JSON, variants and schema are derived."""
