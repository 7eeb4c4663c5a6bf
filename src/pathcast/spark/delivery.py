"""What becomes of matched documents: a row for each subscriber that gets one, a row for each that nobody could read.

Both read the frame that `match_documents` made. Two writes of one frame compute it twice: persist it first, or in a
stream split it in `foreachBatch`.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pathcast.errors import PipelineError

from .matching import ADDED


def deliver(matched: DataFrame) -> DataFrame:
    """One row per document and subscriber: the document's columns and `subscriber`."""
    _need(matched, "subscribers", 'match_documents(…, by="subscriber")')
    if "subscriber" in matched.columns:
        raise PipelineError("the column 'subscriber' is taken, and would be added; rename it first")
    rows = matched.withColumn("subscriber", f.explode("subscribers"))
    return rows.drop("subscribers", "error")


def dead_letters(matched: DataFrame) -> DataFrame:
    """The documents that could not be read, with `error` (reason, line, column)."""
    _need(matched, "error", "match_documents(…)")
    return matched.where(f.col("error").isNotNull()).drop(*(field.name for field in ADDED.values()))


def _need(matched: DataFrame, column: str, maker: str) -> None:
    if column not in matched.columns:
        raise PipelineError(
            f"there is no column '{column}', which {maker} adds; the columns are {', '.join(matched.columns)}"
        )
