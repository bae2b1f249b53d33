"""Access to ClickHouse: the client, its errors, named queries, the cluster, tables from declared columns."""
