"""The engines of the GPX paper's evaluation, each with what is measured of it.

A name may end in `+reuse`: a GPX engine that evaluates the shared parts of overlapping paths once (§4.1, end).

Slow engines take a sample: every n-th document, with n chosen such that a pass over them takes about as long as a
figure gives it. Their answers are compared on the same documents, and every row has their number.
"""

from collections.abc import Iterable
from math import ceil
from time import perf_counter
from typing import TYPE_CHECKING

from pathcast_lab.harness import Run

if TYPE_CHECKING:
    from pathcast.documents.document_reader import Reader
    from pathcast.kernels import UInt64s
    from pathcast.matching import Subscriptions
    from pathcast.matching.engine_contract import Engine, Entries, Offsets
    from pathcast.matching.table.pattern_table import PatternTable

    Answers = tuple[Offsets, Entries]

REUSE = "+reuse"
PROBED, LEAST_TIMED = 3, 10


def build(
    run: Run, names: Iterable[str], table: "PatternTable", x: float
) -> tuple[dict[str, "Engine"], dict[str, float]]:
    """The available engines, and how many seconds each took to build."""
    from pathcast.matching.engine_registry import engine_class, engines

    built: dict[str, Engine] = {}
    seconds: dict[str, float] = {}
    for name in names:
        plain = name.removesuffix(REUSE)
        if plain not in engines():
            run.note(f"The engine {plain} is not part of this version of Pathcast: it is left out.")
            continue
        run.begin(f"building {name} at {x:,}")
        kind = engine_class(plain)  # which loads its kernels
        begin = perf_counter()
        built[name] = kind.build(table) if name == plain else kind(table, reuse=True)  # type: ignore[call-arg]
        seconds[name] = perf_counter() - begin
    return built, seconds


def sampled(engine: "Engine", reader: "Reader", documents: list[bytes], seconds: float) -> list[int]:
    """The documents that an engine is timed on, so that a pass takes about this long."""
    engine.match_batch(reader.read(documents[:1]))
    probe = reader.read(documents[:: ceil(len(documents) / PROBED)])
    begin = perf_counter()
    engine.match_batch(probe)
    each = (perf_counter() - begin) / len(probe)
    count = min(len(documents), max(LEAST_TIMED, int(seconds / each)))
    return list(range(0, len(documents), ceil(len(documents) / count)))


def check_answers(
    run: Run, engines: dict[str, "Engine"], reader: "Reader", documents: list[bytes], samples: dict[str, list[int]]
) -> "Answers":
    """Compare all engines' answers with those of the first, which answers for all documents, and return those."""
    (first, engine), *others = engines.items()
    batch = reader.read(documents)
    run.check("the documents can be read", not batch.errors)
    answers = engine.match_batch(batch)
    for name, other in others:
        sample = samples[name]
        theirs = other.match_batch(
            batch if len(sample) == len(documents) else reader.read([documents[k] for k in sample])
        )
        found = {first: _of(answers, sample), name: _of(theirs, range(len(sample)))}
        run.check_equal("all engines find the same matches", found)
    return answers


def _of(answers: "Answers", sample: Iterable[int]) -> "Answers":
    """The answers for some of the documents, sorted."""
    import numpy as np

    offsets, entries = answers
    found = [np.sort(entries[offsets[index] : offsets[index + 1]]) for index in sample]
    return np.cumsum([0, *map(len, found)]), np.concatenate([entries[:0], *found])


class Filtering:
    """An engine's way from bytes to bit vectors; keeps what each part of it took, call by call."""

    def __init__(self, engine: "Engine", behind: "Answers", reader: "Reader", documents: list[bytes]) -> None:
        import numpy as np

        self.engine, self.reader, self.documents = engine, reader, documents
        self.begin, self.ids = behind
        self.bits: UInt64s = np.zeros(int(self.ids.max(initial=0)) + 63 >> 6, dtype=np.uint64)
        self.reading: list[float] = []
        self.matching: list[float] = []
        self.collecting: list[float] = []
        self._before = dict(engine.statistics())

    def __call__(self) -> None:
        from .result_bit_vector_kernels import collect_bits

        started = perf_counter()
        batch = self.reader.read(self.documents, borrowed=True)
        read = perf_counter()
        offsets, entries = self.engine.match_batch(batch)
        matched = perf_counter()
        collect_bits(offsets, entries, self.begin, self.ids, self.bits)
        self.reading.append(read - started)
        self.matching.append(matched - read)
        self.collecting.append(perf_counter() - matched)

    def counts(self) -> dict[str, float]:
        """The engine's own counts per document, over all calls."""
        after, passed = self.engine.statistics(), len(self.matching) * len(self.documents)
        grown = {name: count - self._before.get(name, 0) for name, count in after.items() if not name.endswith("bytes")}
        return {name: count / passed for name, count in grown.items() if count > 0}


def queries_behind(subscriptions: "Subscriptions") -> "Answers":
    """The queries behind each distinct one: where they begin, and their ids."""
    import numpy as np

    distinct = len(subscriptions.table)
    return subscriptions.expansion().ids_of_all(
        np.arange(distinct + 1, dtype=np.int64), np.arange(distinct, dtype=np.int32)
    )


def bytes_of(engine: "Engine") -> int:
    """The bytes of an engine's own arrays."""
    return sum(array.nbytes for array in engine.arrays().values())
