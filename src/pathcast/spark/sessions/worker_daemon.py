"""Spark's Python workers as forks of a process that has Pathcast in it: `spark.python.daemon.module` of the session.

Spark forks a worker for each stage of a task that runs Python, and imports everything anew in each: 1 s of a core for
Pathcast's rooms and Numba. After every task a worker collects garbage, 80 ms with all that loaded. Here the process
that forks has imported the rooms first, and its objects are not looked at by collections any more (`gc.freeze`).

Invariant: the process has one thread when it forks, as Spark's own has. What starts threads when it is imported
(pyarrow, pandas) is left to the workers.
"""

import gc
from importlib import import_module

ROOMS = (
    "pathcast.matching.matcher",
    "pathcast.matching.automaton.automaton_engine",
    "pathcast.mediation.rewriting.event_rewriter",
    "pathcast.routing.document_forwarding",
    "pathcast.joins.partition.join_value_parts",
    "pathcast.joins.query.row_extraction",
    "pathcast.roxsum",
)


def preload() -> None:
    """Import what workers need, and keep it out of collections."""
    for room in ROOMS:
        import_module(room)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    from pyspark.daemon import manager

    preload()
    manager()
