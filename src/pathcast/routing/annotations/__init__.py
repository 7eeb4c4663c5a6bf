"""Annotations: what a router adds to a document to save the next router work."""
