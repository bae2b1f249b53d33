"""HTTP: envelope, errors, parameters, validators, caching and the OpenAPI document."""
