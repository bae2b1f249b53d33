"""How records look in responses: each object declared once, its variants derived."""
