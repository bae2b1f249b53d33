"""A source that reads views of the store's own ClickHouse."""
