"""Schemas of documents, and DTDs."""
