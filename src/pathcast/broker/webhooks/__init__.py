"""Webhooks: deliveries of a subscription, sent to its sink."""
