"""The data dictionary: every table and column with its meaning, taken from the schema's comments."""

from analytics_service.store.connection import Store


def data_dictionary(store: Store) -> str:
    """Markdown with a section for each table and a line for each column."""
    lines: list[str] = []
    rows = store.frame("dictionary")
    for (table, comment), columns in rows.group_by(["table", "table_comment"], maintain_order=True):
        lines += ["", f"### {table}", "", f"{comment}.", "", "| column | type | meaning |", "|---|---|---|"]
        for column in columns.iter_rows(named=True):
            lines.append(f"| `{column['column']}` | `{column['type']}` | {column['comment']} |")
    return "\n".join(lines).strip() + "\n"
