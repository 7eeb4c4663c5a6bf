"""The message between brokers: a batch as compressed blocks."""
