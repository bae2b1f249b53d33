"""ClickHouse as a child process of a command."""
