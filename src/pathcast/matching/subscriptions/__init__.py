"""Subscriptions: the standing queries, their ids and subscribers, and the files that hold them."""
