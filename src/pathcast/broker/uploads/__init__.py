"""Uploads: documents that wait on the broker's disk until a batch with them is committed, or they expire."""
