"""Standing joins in parts, one per join value, and their state on disk."""
