"""Indexes of semijoins: which subscriptions a change affects."""
