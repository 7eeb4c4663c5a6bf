"""Spark's Python workers as forks of a process that has loaded Pathcast: `spark.python.daemon.module` of the session.

Spark forks a worker for each stage of a task that runs Python, and each imports everything again: some 0.3 s of a
core for Pathcast, NumPy and LLVM. After every task a worker collects garbage, which takes longer the more is loaded.
Here the process that forks imports the packages first, and excludes their objects from collections (`gc.freeze`).

Invariant: the process has one thread when it forks, as Spark's own has. Modules that start threads on import
(pyarrow, pandas) are imported by the workers.
"""

import gc
from importlib import import_module

ROOMS = (
    "pathcast.matching.matcher",
    "pathcast.matching.automaton.automaton_engine",
    "pathcast.mediation.rewriting.element_array_rewriter",
    "pathcast.routing.document_forwarding",
    "pathcast.joins.partition.value_partitioned_join",
    "pathcast.joins.query.row_extraction",
    "pathcast.roxsum",
)


def preload() -> None:
    """Import the modules that workers need, and exclude them from collections."""
    for room in ROOMS:
        import_module(room)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    from pyspark.daemon import manager

    preload()
    manager()
