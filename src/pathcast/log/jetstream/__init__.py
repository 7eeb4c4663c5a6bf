"""The log on NATS JetStream: a stream with replicas, one writer, and a lease that says who writes."""
