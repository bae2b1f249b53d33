"""The data dictionary: the meaning of every table and column, taken from the comments of the schema."""

from analytics_service.store.connection import Store


def data_dictionary(store: Store) -> str:
    """The dictionary as Markdown, with a section for each table and a line for each column."""
    lines: list[str] = []
    rows = store.frame("dictionary")
    for (table, comment), columns in rows.group_by(["table", "table_comment"], maintain_order=True):
        lines += ["", f"### {table}", "", f"{comment}.", "", "| column | type | meaning |", "|---|---|---|"]
        for column in columns.iter_rows(named=True):
            lines.append(f"| `{column['column']}` | `{column['type']}` | {column['comment']} |")
    return "\n".join(lines).strip() + "\n"
