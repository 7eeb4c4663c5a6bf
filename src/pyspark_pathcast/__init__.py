"""Makes the data source `pathcast` known to Spark, which looks for `DefaultSource` in all packages named `pyspark_…`.

Without the packages of the extra `spark` there is no source, and Spark finds others undisturbed.
"""

from contextlib import suppress

with suppress(ImportError):
    from pathcast.spark.log.log_data_source import LogDataSource as DefaultSource  # noqa: F401 - Spark looks for it
