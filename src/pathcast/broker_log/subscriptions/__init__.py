"""Subscriptions as the log leaves them: versions, cursors, order of ids, texts to search; packed for restarts."""
