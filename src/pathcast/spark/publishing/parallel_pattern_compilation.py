"""Compilation by several workers: large sets of expressions with predicates become pieces, which one task merges.

    distinct expressions ── 10,000 at a time ──▶ compiled into a file ── its name ──▶ merged by the task that publishes

A worker parses, normalises and compiles expressions into the tables of a small index
(`matching/table/pattern_shard_merging.py`) and writes these next to the versions of the index; Spark's rows contain
only the names of the files. The task that publishes creates no object per pattern. Only large sets of expressions with
predicates are compiled this way, because workers have to start and to load the kernels. A plain path costs the task 2
µs, less than its transfer to another worker.

Invariant: entries, reasons and columns do not depend on the pieces; the publishing task itself parses expressions that
are in no piece, or were compiled for other settings than those of the index.
Cost: some 120 µs per expression, shared by the workers, and 5 µs in the last task. With two workers it is faster from
some tens of thousands of expressions on.
"""

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pathcast.kernels import Int32s, Int64s
from pathcast.matching import Matcher, Mergeable, engine_class
from pathcast.matching.subscriptions import LARGEST_ID
from pathcast.matching.table import Arrays, compile_shard, merge_shard, packed, unpacked
from pathcast.patterns import Namespaces
from pathcast.patterns.parsing import MAX_STEPS
from pathcast.store import pack, read_manifest, reading_snapshot

from .index_versions import check_home, parts_folder, version_folder, versions

# One task alone compiles fewer expressions with predicates than this, unless the caller sets another bound: until then
# two workers have barely started. One worker alone is never faster.
MANY = 50_000
# Expressions that are compiled at a time: a worker needs some 10 kB for each, and writes one file for all.
SHARD = 10_000
# Characters of expressions that are not plain paths.
PREDICATES = r"[\[@(]"
PIECES = "part string, of int"
# Rows whose expression is parsed, as in `subscription_row_parser.checked`; without ids, none is `given`.
PARSED = f"change = 'added' and (id between 1 and {LARGEST_ID} or given = '')"
_SETTINGS, _TEXTS, _OFFSETS = "settings", "texts", "text_offsets"

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that an expression is parsed and compiled with."""

    namespaces: Namespaces
    max_steps: int
    engine: str | None

    @classmethod
    def of(cls, matcher: Matcher) -> "Settings":
        """The settings of a matcher."""
        table = matcher.subscriptions.table
        return cls(table.namespaces, table.max_steps, matcher.engine_name)

    @classmethod
    def newest(cls, folder: str) -> "Settings | None":
        """The settings of the newest version in a folder, if there is one."""
        known = versions(folder)
        if not known:
            return None
        version = version_folder(folder, known[-1])
        with reading_snapshot(version):
            facts = read_manifest(version)["facts"]
            return cls(facts["namespaces"], facts["max_steps"], facts["engine"])

    def written(self) -> bytes:
        """The settings as bytes, to compare them."""
        return json.dumps([self.namespaces, self.max_steps, self.engine], sort_keys=True).encode()


@dataclass(frozen=True, slots=True)
class Compiling:
    """The work on expressions; with `fresh` for a new index with these settings, otherwise for the newest one."""

    folder: str
    token: str
    settings: Settings
    fresh: bool
    size: int

    def function(self) -> Callable[[Batches], Batches]:
        """The function that a task runs on its expressions."""

        def compiled(batches: Batches) -> Batches:
            settings = self._settings()
            for of, expressions in _chunks(batches, 2 * self.size):  # most tasks have this many, some a few more
                name = self._compile(expressions, settings)
                yield pa.RecordBatch.from_pydict({"part": pa.array([name]), "of": pa.array([of], pa.int32())})

        return compiled

    def _settings(self) -> Settings:
        found = None if self.fresh else Settings.newest(self.folder)
        return self.settings if found is None else found

    def _compile(self, expressions: list[str], settings: Settings) -> str:
        """Compile expressions into a new file; return its name."""
        engine = settings.engine
        assert engine is not None
        arrays = compile_shard(expressions, settings.namespaces, settings.max_steps, engine)
        arrays[_SETTINGS] = np.frombuffer(settings.written(), dtype=np.uint8)
        arrays[_TEXTS], arrays[_OFFSETS] = pack(expressions)
        check_home(self.folder)
        home = parts_folder(self.folder, self.token)
        home.mkdir(exist_ok=True)
        name = f"piece-{secrets.token_hex(8)}"  # each attempt has its own
        (home / name).write_bytes(packed(arrays))
        return name


def compiled_pieces(rows: DataFrame, work: Compiling, count: int) -> DataFrame:
    """The names of the files into which workers compile the rows' expressions with predicates, and the rows' origin.

    There are about `count` files.
    """
    chosen = rows.where(f.col("xpath").rlike(PREDICATES)).where(PARSED).select("xpath", "of")
    spread = chosen.repartition(-(-count // work.size), "xpath", "of").distinct()
    return spread.mapInArrow(work.function(), PIECES)


def bound_of(spark: SparkSession, many: int | None) -> int | None:
    """The number of expressions from which workers compile them; None: never."""
    if many is not None:
        return max(1, many)
    return MANY if _has_several_workers(spark) else None


def count_with_predicates(expressions: pa.Array) -> int:
    """The number of expressions with predicates."""
    return pc.sum(pc.match_substring_regex(expressions, PREDICATES)).as_py() or 0


class Compiled:
    """The result for expressions: the `entries` of all, -1 if there is none, and why some were `refused`, by row.

    `left` are the rows that are not parsed yet.
    """

    def __init__(self, count: int) -> None:
        self.entries: Int32s = np.full(count, -1, dtype=np.int32)
        self.refused: dict[int, tuple[str, int | None]] = {}
        self.left: Int64s = np.arange(count)


def merge_pieces(home: Path, names: list[str], matcher: Matcher, expressions: pa.Array) -> Compiled:
    """Merge pieces into a matcher's table and engine; return the result for all expressions."""
    compiled = Compiled(len(expressions))
    engine = matcher.engine
    if not names or not isinstance(engine, Mergeable):
        return compiled
    settings = Settings.of(matcher).written()
    looked_at = np.zeros(len(expressions), dtype=np.bool_)
    values = expressions.cast(pa.large_string())
    for name in sorted(names):
        arrays = unpacked((home / name).read_bytes())
        if arrays[_SETTINGS].tobytes() != settings:  # another index was published meanwhile
            continue
        merged = merge_shard(matcher.subscriptions.table, engine, arrays)
        places = pc.index_in(_texts(arrays), value_set=values).fill_null(-1).to_numpy()
        known = places >= 0
        compiled.entries[places[known]] = merged.entries[known]
        for at, reason, column in merged.refused:
            compiled.refused[int(places[at])] = reason, column
        known[merged.left] = False
        looked_at[places[known]] = True
    compiled.refused.pop(-1, None)
    compiled.left = np.flatnonzero(~looked_at)
    return compiled


def _texts(arrays: Arrays) -> pa.Array:
    buffers = [None, pa.py_buffer(arrays[_OFFSETS]), pa.py_buffer(arrays[_TEXTS])]
    return pa.LargeStringArray.from_buffers(len(arrays[_OFFSETS]) - 1, *buffers[1:])


def _chunks(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[tuple[int, list[str]]]:
    """Expressions by the origin of their rows, up to `size` at a time."""
    held: dict[int, list[str]] = {}
    for batch in batches:
        xpaths, ofs = batch["xpath"], batch["of"]
        for of in pc.unique(ofs).to_pylist():
            mine = held.setdefault(of, [])
            mine += xpaths.filter(pc.equal(ofs, of)).to_pylist()
            while len(mine) >= size:
                yield of, mine[:size]
                del mine[:size]
    for of, rest in held.items():
        if rest:
            yield of, rest


def _has_several_workers(spark: SparkSession) -> bool:
    """Whether tasks run side by side; a client of Spark Connect cannot know, and assumes so."""
    try:
        return spark.sparkContext.defaultParallelism > 1
    except PySparkException:
        return True


def default_settings(namespaces: Namespaces, engine: str | None) -> Settings:
    """The settings of a new index."""
    return Settings(
        dict(namespaces) if isinstance(namespaces, Mapping) else namespaces, MAX_STEPS, engine_class(engine).name
    )
