"""Standing joins on Spark."""
