"""Documents on Spark: parse, match, mediate, summarize and deliver."""
