"""A broker's log as a data source of Spark: `format("pathcast")`."""
