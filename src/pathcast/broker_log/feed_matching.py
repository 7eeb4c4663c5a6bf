"""Who matches a feed's documents: the broker, or Spark.

    sequences    1 ───────── 100 ───────────────── 250 ─────────▶
    matched by   broker      Spark                 broker

A feed's record has `matching`, in force from its own sequence on; the sequencer processes such a record as a batch
of its own. Both find the same matches, so nothing else depends on it.
"""

# Where Spark matches: from begin to before end, None while it continues; in order.
SparkSpans = tuple[tuple[int, int | None], ...]


def with_matching(spans: SparkSpans, sequence: int, *, spark: bool) -> SparkSpans:
    """The spans once a feed's record at a sequence is in force."""
    is_open = bool(spans) and spans[-1][1] is None
    if spark == is_open:
        return spans
    return (*spans, (sequence, None)) if spark else (*spans[:-1], (spans[-1][0], sequence))


def spark_since(spans: SparkSpans, first: int) -> SparkSpans:
    """The spans that concern documents from `first` on."""
    return tuple(span for span in spans if span[1] is None or span[1] > first)
