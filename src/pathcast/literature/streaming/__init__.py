"""What the engines of the literature share: start and end tags as events, bindings, value tests."""
