"""ClickHouse as a child process of the command that needs it."""
