"""Verification: which of the candidates of a document match."""
