"""Queries: schemas, SQL, subscriptions and their decomposition, and rows extracted from documents."""
