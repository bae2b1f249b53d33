"""What is HTTP about the service: envelope, errors, query parameters, caching headers."""
