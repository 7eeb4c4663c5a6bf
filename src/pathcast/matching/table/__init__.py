"""The table of distinct patterns: equal subscriptions share one entry, and engines see entries alone."""
