"""Value joins: patterns that one element decides, by its state and the value tests that it and its ancestors pass."""
