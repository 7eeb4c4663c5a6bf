"""Opaque patterns: of an engine's candidates, those whose expression holds.

An engine matches an opaque pattern by its tree, which may hold where the expression does not. `decided` evaluates the
expression on each document for which the engine reports the pattern, and removes the pattern where it does not hold.
An engine that is `counting` has matched counted trees, which need no evaluation.

Invariant: answers are exact. An expression that takes more than `Limits.evaluation` steps on a document makes that
document an error in the batch, with the expression in the reason; other documents are unaffected. Whether it does
depends on the expression and the document alone. Without a limit (`NO_LIMIT`), a document never becomes an error: an
expression that takes more steps than `steps_allowed` does not match it, and a line in the log says so.
Cost: nothing without opaque patterns. With them, one look-up per match, then the nodes of each document that has
candidates (`document_nodes.py`), once, and the evaluation of each candidate.
Threads: any number may evaluate; compiled expressions are shared.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch, Limits
from pathcast.errors import LimitError
from pathcast.kernels import Bools, Int32s, Int64s
from pathcast.patterns import Namespaces, Pattern
from pathcast.patterns.xpath import parse_expression
from pathcast.store import offsets_of

from .document_nodes import DocumentNodes, NamesOfBatch, OutOfWorkError, from_arrays
from .expression_compiler import CompiledExpression
from .label_path_index import LabelPaths
from .markup_nodes import from_bytes

_MOST_COMPILED = 10_000  # expressions that stay compiled, some 10 kB each
_SHOWN = 100
NO_LIMIT = 1 << 60
"""As a limit: no subscription costs others a document. Where one takes too many steps, it alone does not match."""
_FEW_STEPS, _STEPS_PER_ELEMENT = 1 << 18, 64
_LOGGER = logging.getLogger("pathcast.matching")
_NO_FLAGS: Bools = np.zeros(0, dtype=np.bool_)


def steps_allowed(elements: int) -> int:
    """Steps per expression on a document of this many elements, without a limit.

    Enough for expressions whose cost is proportional to the document; few enough that one expression takes a fraction
    of a second on a small document. A function of the document alone, so that a document matched again gives the same.
    """
    return _FEW_STEPS + _STEPS_PER_ELEMENT * elements


class OpaquePatterns:
    """The opaque patterns of a table, by entry."""

    def __init__(
        self,
        namespaces: Namespaces,
        entries: Sequence[int],
        counted: Sequence[int],
        pattern: Callable[[int], Pattern],
    ) -> None:
        """For ascending `entries`, of which `counted` have counted trees; both may grow."""
        self.entries, self.counted = entries, counted
        self._ignore = namespaces == "ignore"
        self._pattern = pattern
        self._flags = [_NO_FLAGS, _NO_FLAGS]  # of all, and of those without counted trees
        self._compiled: dict[int, CompiledExpression] = {}
        self._label_paths = LabelPaths()
        self._counting = threading.Lock()
        self.evaluated = self.held = self.exceeded = 0
        self._tries: dict[int, int] = {}
        self._steps: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def waiting(self, counting: bool) -> bool:
        """Whether some patterns need evaluations after an engine that is `counting`, or is not."""
        return not counting or len(self.counted) < len(self.entries)

    def mask(self, size: int) -> Bools:
        """Which of the entries below `size` are opaque."""
        flags = np.zeros(size, dtype=np.bool_)
        own = np.array(self.entries, dtype=np.int32)
        flags[own[own < size]] = True
        return flags

    def decided(
        self, batch: DocumentBatch, offsets: Int64s, entries: Int32s, limits: Limits, *, counting: bool = False
    ) -> tuple[Int64s, Int32s]:
        """An engine's answer without the opaque patterns that do not hold, and without documents beyond the limit."""
        if not batch.data_offsets[-1]:
            return offsets, entries  # label paths, not documents: for these, trees are candidates anyway
        last = self.entries[-1]
        if len(self._flags[counting]) <= last:
            self._flags[counting] = flags = self.mask(last + 1)
            if counting:
                flags[[entry for entry in self.counted if entry <= last]] = False
        flags = self._flags[counting]
        places = np.flatnonzero(flags[np.minimum(entries, len(flags) - 1)] & (entries < len(flags)))
        if not len(places):
            return offsets, entries
        kept = np.ones(len(entries), dtype=np.bool_)
        nodes = NodesOfBatch(batch, ignore_namespaces=self._ignore, label_paths=self._label_paths)
        of = np.searchsorted(offsets, places, side="right") - 1
        for place, document in zip(places.tolist(), of.tolist(), strict=True):
            if document in batch.errors:
                continue
            try:
                kept[place] = self.holds(int(entries[place]), nodes, document, limits)
            except LimitError as error:
                batch.errors[document] = error.with_traceback(None)
        for document in batch.errors:
            kept[offsets[document] : offsets[document + 1]] = False
        return offsets_of(kept)[offsets].astype(np.int64), entries[kept]

    def holds(self, entry: int, nodes: "NodesOfBatch", document: int, limits: Limits) -> bool:
        """Whether the expression of an entry holds on a document; `LimitError` if that takes too much work."""
        compiled = self.compiled(entry)
        accepted = limits.evaluation >= NO_LIMIT
        given = steps_allowed(nodes.elements(document)) if accepted else limits.evaluation
        holds, exceeded, spent = False, False, given
        try:
            made = nodes.of(document, compiled)
            holds = compiled.holds(made, given)
            spent -= made.work
        except OutOfWorkError:
            exceeded = True
        with self._counting:
            self.evaluated += 1
            self.held += holds
            self.exceeded += exceeded
            self._tries[entry] = self._tries.get(entry, 0) + 1
            self._steps[entry] = self._steps.get(entry, 0) + spent
        if exceeded:
            text = self._pattern(entry).expression
            shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
            if accepted:
                _LOGGER.error(
                    "evaluating the subscription %r takes too many steps on a document; it does not match", shown
                )
                return False
            raise limits.exceeded("evaluation", f"evaluating the subscription {shown!r} takes too many steps")
        return holds

    def matching(self, entries: Iterable[int], batch: DocumentBatch, limits: Limits) -> list[int]:
        """Those of some opaque entries whose expressions hold on the only document of a batch."""
        nodes = NodesOfBatch(batch, ignore_namespaces=self._ignore, label_paths=self._label_paths)
        return [entry for entry in entries if self.holds(entry, nodes, 0, limits)]

    def compiled(self, entry: int) -> CompiledExpression:
        """The compiled expression of an entry."""
        found = self._compiled.get(entry)
        if found is None:
            if len(self._compiled) >= _MOST_COMPILED:
                self._compiled = {}
            found = CompiledExpression(
                parse_expression(self._pattern(entry).expression, ignore_namespaces=self._ignore)
            )
            self._compiled[entry] = found
        return found

    def costs(self) -> "OpaqueCosts":
        """How often each entry was evaluated, and the steps that it took."""
        with self._counting:
            entries = np.array(list(self._tries), dtype=np.int32)
            tries = np.array(list(self._tries.values()), dtype=np.int64)
            steps = np.array([self._steps[entry] for entry in self._tries], dtype=np.int64)
        return OpaqueCosts(entries, tries, steps)

    def statistics(self) -> dict[str, int | float]:
        """Counts since the table was made."""
        return {
            "opaque patterns": len(self),
            "opaque patterns by places": len(self.counted),
            "full evaluations": self.evaluated,
            "full evaluations that match": self.held,
            "full evaluations beyond the limit": self.exceeded,
        }


class OpaqueCosts(NamedTuple):
    """Per entry: the number of documents it was evaluated on, and the steps that this took."""

    entries: Int32s
    tries: Int64s
    steps: Int64s


class NodesOfBatch:
    """The nodes of a batch's documents, made when an expression asks for them; only the latest document's are kept."""

    def __init__(self, batch: DocumentBatch, *, ignore_namespaces: bool, label_paths: LabelPaths | None = None) -> None:
        """`label_paths`: those of many batches, which expressions then remember."""
        self._batch = batch
        self._ignore = ignore_namespaces
        self._arena: bytes | None = None
        self._names = NamesOfBatch(batch)
        self._label_paths = LabelPaths() if label_paths is None else label_paths
        self._document = -1
        self._elements: DocumentNodes | None = None
        self._markup: dict[bool, DocumentNodes] = {}

    def elements(self, document: int) -> int:
        """The number of elements of a document."""
        return int(self._batch.offsets[document + 1] - self._batch.offsets[document])

    def of(self, document: int, expression: CompiledExpression) -> DocumentNodes:
        """The nodes of a document that an expression can see; `OutOfWorkError` if they are too many."""
        if document != self._document:
            self._document, self._elements, self._markup = document, None, {}
        if self._elements is None:
            if self._arena is None:
                self._arena = self._batch.arena.tobytes()
            self._elements = from_arrays(
                self._batch, document, self._arena, self._names, ignore_namespaces=self._ignore
            )
            self._elements.root = self._label_paths.for_document(self.elements(document))
        if not expression.needs_markup:
            return self._elements
        namespaces = expression.needs_namespaces
        if namespaces not in self._markup:
            read = from_bytes(
                self._batch, document, self._elements, ignore_namespaces=self._ignore, namespace_nodes=namespaces
            )
            if read is not None:
                read.root = self._elements.root
            self._markup[namespaces] = read or self._elements
        return self._markup[namespaces]
