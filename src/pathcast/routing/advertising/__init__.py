"""Advertisements: the aggregated subscriptions that a router sends to its neighbours."""
