"""A sample of documents, and the share of it that a generated path matches.

Used to control the match rate of a workload, not to deliver: it supports only the paths that schema_walks.py draws, and
names as they are written. The elements of all documents are in one set of arrays in document order, `end` being the
index after the last descendant; a path is evaluated set by set over sorted index arrays.

Why it is right: a step keeps the candidates (elements of its name) whose parent is in the set (`/`), or that lie in
the interval of a member (`//`: the largest `end` among the members before a candidate exceeds it). A nested path is
evaluated from its last step upward, which yields the elements that have it.
Cost: a few array operations over the elements of a name, per step; results for prefixes without conditions are cached.
"""

from collections.abc import Iterable
from typing import Any
from xml.parsers.expat import ErrorString, ExpatError, ParserCreate

import numpy as np
import numpy.typing as npt

from pathcast.errors import DocumentError
from pathcast.kernels import Bools, Floats, Int64s
from pathcast.workloads.schema_walks import Comparison, Path

Indices = Int64s
REMEMBERED = 20_000


class Sample:
    """Documents prepared for `share(path)`."""

    def __init__(self, documents: Iterable[bytes]) -> None:
        reader = _Reader()
        for document in documents:
            reader.read(document)
        if not reader.documents:
            raise ValueError("the sample has no documents; give at least one to measure the match rate")
        self.documents = reader.documents
        count = len(reader.parents)
        self._parent = np.array(reader.parents, dtype=np.int64)
        self._parent[self._parent < 0] = count  # the document node, never in a set
        self._end = np.array(reader.ends, dtype=np.int64)
        self._document = np.array(reader.document_of, dtype=np.int64)
        self._all = np.arange(count, dtype=np.int64)
        self._roots = np.flatnonzero(self._parent == count)
        self._named = {name: np.array(indices, dtype=np.int64) for name, indices in reader.by_name.items()}
        self._values = {target: _Values(*pairs) for target, pairs in reader.values.items()}
        self._text = "".join(reader.text)
        self._text_from, self._text_to = reader.text_from, reader.text_to
        self._member = np.zeros(count + 1, dtype=np.bool_)
        self._prefixes: dict[str, Indices] = {}

    def share(self, path: Path) -> float:
        """The share of the documents that the path matches."""
        found = self._evaluate(path)
        if not len(found):
            return 0.0
        documents = self._document[found]
        return (1 + int(np.count_nonzero(documents[1:] != documents[:-1]))) / self.documents

    def _evaluate(self, path: Path) -> Indices:
        found: Indices | None = None
        prefix = ""
        plain = True
        for at, step in enumerate(path.steps):
            prefix += step
            conditions = path.conditions.get(at)
            known = self._prefixes.get(prefix) if plain else None
            if known is None:
                known = self._step(found, step)
                if plain:
                    if len(self._prefixes) >= REMEMBERED:
                        self._prefixes.clear()
                    self._prefixes[prefix] = known
            found = known
            for condition in conditions or ():
                plain = False
                found = found[self._holds(found, condition)]
            if not len(found):
                break
        return found if found is not None else self._all[:0]

    def _candidates(self, name: str) -> Indices:
        return self._all if name == "*" else self._named.get(name, self._all[:0])

    def _step(self, above: Indices | None, step: str) -> Indices:
        """The elements that the step leads to from those above (None: from the document node)."""
        candidates = self._candidates(step.lstrip("/"))
        if step.startswith("//"):
            if above is None:
                return candidates
            before = np.searchsorted(above, candidates, side="left") - 1
            reach = np.maximum.accumulate(self._end[above])
            return candidates[(before >= 0) & (reach[before] > candidates)]
        if above is None:
            return np.intersect1d(self._roots, candidates, assume_unique=True)
        self._member[above] = True
        inside = candidates[self._member[self._parent[candidates]]]
        self._member[above] = False
        return inside

    def _holds(self, elements: Indices, condition: Comparison | list[str]) -> Bools:
        if isinstance(condition, Comparison):
            if condition.operator == "contains":
                text, start, stop = self._text, self._text_from, self._text_to
                return np.array(
                    [condition.value in text[start[e] : stop[e]] for e in elements.tolist()], dtype=np.bool_
                )
            values = self._values.get(condition.target)
            holding = self._all[:0] if values is None else values.satisfying(condition)
        else:
            holding = self._holding(condition)
        self._member[holding] = True
        kept = self._member[elements]
        self._member[holding] = False
        return kept

    def _holding(self, steps: list[str]) -> Indices:
        """The elements with a match of a relative path, possibly with repetitions and the document node."""
        below = self._candidates(steps[-1].lstrip("/"))
        for at in range(len(steps) - 1, 0, -1):
            candidates = self._candidates(steps[at - 1].lstrip("/"))
            if steps[at].startswith("//"):
                after = np.searchsorted(below, candidates, side="right")
                padded = np.append(below, len(self._all))
                below = candidates[padded[after] < self._end[candidates]]
            else:
                parents = self._parent[below]
                self._member[parents] = True
                kept = candidates[self._member[candidates]]
                self._member[parents] = False
                below = kept
        return self._parent[below]


class _Values:
    """The values of one attribute, or of all text nodes, and the elements that they belong to."""

    def __init__(self, elements: list[int], values: list[str]) -> None:
        self._elements: Indices = np.array(elements, dtype=np.int64)
        self._strings: npt.NDArray[np.str_] = np.array(values, dtype=np.str_)
        self._numbers: Floats = np.array([_number(value) for value in values], dtype=np.float64)

    def satisfying(self, comparison: Comparison) -> Indices:
        chosen: Bools
        if not comparison.numeric:
            chosen = self._strings == comparison.value
        elif comparison.operator == "=":
            chosen = self._numbers == float(comparison.value)
        elif comparison.operator == "<=":
            chosen = self._numbers <= float(comparison.value)
        else:
            chosen = self._numbers >= float(comparison.value)
        return self._elements[chosen]


def _number(value: str) -> float:
    text = value.strip(" \t\r\n")
    return float(text) if text.isascii() and text.replace(".", "", 1).removeprefix("-").isdigit() else float("nan")


class _Reader:
    """Reads documents with expat into lists."""

    def __init__(self) -> None:
        self.documents = 0
        self.parents: list[int] = []
        self.ends: list[int] = []
        self.document_of: list[int] = []
        self.by_name: dict[str, list[int]] = {}
        self.values: dict[str, tuple[list[int], list[str]]] = {}
        self.text: list[str] = []
        self.text_from: list[int] = []
        self.text_to: list[int] = []
        self._length = 0
        self._open: list[int] = []
        self._node: list[str] = []

    def read(self, document: bytes) -> None:
        parser = ParserCreate()
        parser.ordered_attributes = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._node.append
        try:
            parser.Parse(document, True)
        except ExpatError as error:
            reason = f"document {self.documents + 1} of the sample cannot be read: {ErrorString(error.code)}"
            raise DocumentError(reason, line=error.lineno, column=error.offset + 1) from error
        self.documents += 1

    def _start(self, name: str, attributes: Any) -> None:
        self._close_text()
        index = len(self.parents)
        self.by_name.setdefault(name, []).append(index)
        self.parents.append(self._open[-1] if self._open else -1)
        self.ends.append(index + 1)
        self.document_of.append(self.documents)
        self.text_from.append(self._length)
        self.text_to.append(self._length)
        self._open.append(index)
        for at in range(0, len(attributes), 2):
            elements, values = self.values.setdefault("@" + attributes[at], ([], []))
            elements.append(index)
            values.append(attributes[at + 1])

    def _end(self, name: str) -> None:
        self._close_text()
        index = self._open.pop()
        self.ends[index] = len(self.parents)
        self.text_to[index] = self._length

    def _close_text(self) -> None:
        if self._node:
            text = "".join(self._node)
            self._node.clear()
            self.text.append(text)
            self._length += len(text)
            elements, values = self.values.setdefault("text()", ([], []))
            elements.append(self._open[-1])
            values.append(text)
