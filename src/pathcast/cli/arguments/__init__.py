"""What commands accept and write: shared options, documents and subscriptions that arguments name."""
