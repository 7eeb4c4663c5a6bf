"""The log on one machine: SQLite segments and checkpoints in a folder."""
