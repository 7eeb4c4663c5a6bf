"""Tables of subscriptions on Spark: parsed, compiled and published as versions of an index."""
