"""Values: access predicates, the index of value tests, and patterns that one element decides."""
