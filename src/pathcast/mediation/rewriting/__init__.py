"""Rewriting of element arrays, of label paths, and of subscriptions."""
