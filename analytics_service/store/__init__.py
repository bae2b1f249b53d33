"""ClickHouse: connection, migrations, reading, writing, the snapshot ledger, the embedded server."""
