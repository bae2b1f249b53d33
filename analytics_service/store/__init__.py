"""ClickHouse: connection, migrations, reading, writing, the snapshot ledger."""
