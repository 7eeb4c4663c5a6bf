"""Updates: how the index follows its subscriptions while threads match documents."""
