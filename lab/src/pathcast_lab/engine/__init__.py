"""Experiments on the default engine: reading, matching, values, changes, the index."""
