"""The tables of each dataset: columns, readers, and batches to insert."""
