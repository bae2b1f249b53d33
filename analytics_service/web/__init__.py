"""The web pages for people: HTML, CSS and our own JavaScript modules."""
