"""Mappings from a local schema to the global schema, and the operators that they consist of."""
