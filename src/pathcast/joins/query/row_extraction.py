"""Extraction: rows of a table from documents, by one path for the rows and one path per column.

    Extraction("Stocks", rows="//stock", columns={"symbol": "@symbol", "per": "ratio/per float", "day": "../@day date"})

A row is an element that the path of the rows selects. A column's value is the string of the first node that its path
selects from there, as XPath's string() returns it, read as a value of the column's kind. Paths are steps (a name or
`*`) with `/` and `//`; a column's path may begin with `..` and end in `@name` or `text()`, or be `.`.

Which elements are rows, and which elements supply a column of which row, depends on label paths alone and is computed
once per label path. The rest is array operations: elements by label path, ancestors by level, the first of each.

Invariant: rows are in document order; the rows of a document do not depend on its neighbours in the batch. A value
that cannot be read is an error of its row alone.
Cost: some array operations per batch and column, and the construction of each value.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pathcast.documents import ROOT, DocumentBatch, LabelPaths
from pathcast.errors import DocumentError, PathcastError, SchemaError
from pathcast.kernels import Int32s, Int64s
from pathcast.messages import Scalar

from .order_preserving_key_encoding import KIND_NAMES, Kind, kind_named
from .value_text_conversion import read_value

CHANGES = ("insert", "delete")
_NAME = r"(?:\{[^{}]*\})?[^\W\d][\w.\-]*"
_STEP = re.compile(rf"(//?)?(\.\.|\.|text\(\)|\*|@?{_NAME})")
# Up to this many label paths are cached; then the cache is cleared.
_MOST_PATHS = 1 << 16


class Step(NamedTuple):
    """A step down: to children of this name, or (`deep`) to all elements below; `*` is any name."""

    deep: bool
    name: str


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """From a row up `up` levels, down some steps, and there to a value.

    leaf: `.` for the element's string-value, `text()`, or `@name`; `deep`: of any element below as well.
    """

    up: int
    steps: tuple[Step, ...]
    leaf: str
    deep: bool


@dataclass(frozen=True)
class Extraction:
    """How the rows of a table are found in documents.

    columns: for each column, its path, and after a blank its kind (`string` by default): `"price float"`. required:
    columns that must have a value. change: `insert` or `delete`, or the path of an attribute or element that holds one
    of these words.
    """

    table: str
    rows: str
    columns: Mapping[str, str]
    required: Sequence[str] = ()
    change: str = "insert"
    kinds: Mapping[str, Kind] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        kinds = {}
        for name, given in (("table", self.table), ("rows", self.rows), ("change", self.change)):
            if not isinstance(given, str):
                raise SchemaError(f"{name} must be a string, got {given!r}")
        columns: object = self.columns
        texts = isinstance(columns, Mapping) and all(isinstance(text, str) for pair in columns.items() for text in pair)
        if not texts:
            shape = "columns must map names to paths, such as {'per': 'ratio/per float'}"
            raise SchemaError(f"invalid columns of table '{self.table}': {shape}, got {columns!r}")
        if isinstance(self.required, str):
            raise SchemaError(f"required must be a list of columns, such as ['per'], got {self.required!r}")
        if not self.columns:
            raise SchemaError(
                f"table '{self.table}' has no columns; give at least one, such as {{'per': 'ratio/per float'}}"
            )
        for column, text in self.columns.items():
            _, _, kind = text.strip().partition(" ")
            try:
                kinds[column] = kind_named(kind.strip() or "string")
            except KeyError:
                raise SchemaError(
                    f"column '{column}' has the unknown kind '{kind.strip()}'; use one of {', '.join(KIND_NAMES)}"
                ) from None
        for column in self.required:
            if column not in kinds:
                raise SchemaError(
                    f"`required` names '{column}', which is not a column of '{self.table}'; use one of "
                    f"{', '.join(kinds)}"
                )
        object.__setattr__(self, "kinds", kinds)
        _ = self.row_steps, self.column_paths, self.change_path

    @cached_property
    def row_steps(self) -> tuple[Step, ...]:
        """The path of the rows, from the root."""
        found = _read_path(self.rows, "rows")
        if found.up or found.leaf != "." or found.deep or not found.steps:
            raise SchemaError(
                f"the row path '{self.rows}' does not select elements; give a path such as '/prices/stock'"
            )
        if not self.rows.lstrip().startswith("/"):  # anywhere, as in a subscription
            return (Step(deep=True, name=found.steps[0].name), *found.steps[1:])
        return found.steps

    @cached_property
    def column_paths(self) -> dict[str, ColumnPath]:
        """The path of each column."""
        return {
            column: _read_path(text.strip().partition(" ")[0], f"column '{column}'", relative=True)
            for column, text in self.columns.items()
        }

    @cached_property
    def change_path(self) -> ColumnPath | None:
        """The path to the change of a row; None when all rows make the same change."""
        return None if self.change in CHANGES else _read_path(self.change, "change", relative=True)


class Extracted(NamedTuple):
    """Rows of documents: for each row, the document's number, the row's number there, and either values or an error."""

    documents: list[int]
    numbers: list[int]
    changes: list[str]
    rows: list[dict[str, Scalar]]
    errors: dict[int, PathcastError]


class Extractor:
    """Extracts rows from batches, and caches the meaning of their label paths."""

    def __init__(self, extraction: Extraction) -> None:
        self.extraction = extraction
        self._forget()

    def _forget(self) -> None:
        self._paths = LabelPaths()
        self._labels: list[tuple[str, ...]] = []
        self._is_row = np.zeros(0, dtype=np.bool_)
        self._levels: dict[ColumnPath, dict[int, list[int]]] = {}

    def extract(self, batch: DocumentBatch) -> Extracted:
        """The rows of all documents that could be read."""
        if len(self._paths) > _MOST_PATHS:
            self._forget()
        numbers = self._paths.add(batch)
        self._follow()
        rows = np.flatnonzero(self._is_row[numbers]) if len(numbers) else np.empty(0, dtype=np.int64)
        documents = np.searchsorted(batch.offsets, rows, side="right") - 1
        first = np.searchsorted(documents, documents)
        columns = _Columns(self, batch, numbers, rows)
        texts = {column: columns.texts(path) for column, path in self.extraction.column_paths.items()}
        path = self.extraction.change_path
        changes = [self.extraction.change] * len(rows) if path is None else columns.texts(path)
        found = Extracted(documents.tolist(), (np.arange(len(rows)) - first).tolist(), [], [], {})
        for place in range(len(rows)):
            try:
                found.changes.append(_change(changes[place]))
                found.rows.append(self._values({column: values[place] for column, values in texts.items()}))
            except PathcastError as error:
                error.line, error.column = _place(batch, documents[place], int(rows[place]))
                found.errors[place] = error
                del found.changes[place:]
                found.changes.append("")
                found.rows.append({})
        return found

    def _values(self, texts: Mapping[str, str | None]) -> dict[str, Scalar]:
        values: dict[str, Scalar] = {}
        for column, text in texts.items():
            try:
                values[column] = read_value(self.extraction.kinds[column], text)
            except ValueError as error:
                raise DocumentError(f"invalid value of column '{column}': {error}") from None
            if values[column] is None and column in self.extraction.required:
                raise DocumentError(
                    f"column '{column}' is required but has no value; add the value, or omit the column from `required`"
                )
        return values

    def _follow(self) -> None:
        """Process new label paths."""
        before = len(self._labels)
        if before == len(self._paths):
            return
        self._labels += [self._paths.labels(number) for number in range(before, len(self._paths))]
        more = [fits(self.extraction.row_steps, labels) for labels in self._labels[before:]]
        self._is_row = np.append(self._is_row, np.array(more, dtype=np.bool_))
        if any(more):  # elements that were ignored so far may now belong to rows
            self._levels = {}

    def levels(self, path: ColumnPath, number: int) -> list[int]:
        """The possible distances in levels from an element of this label path up to the base of a row."""
        known = self._levels.setdefault(path, {})
        found = known.get(number)
        if found is None:
            labels = self._labels[number]
            bases = self._bases(path.up)
            found = known[number] = [
                len(labels) - depth
                for depth, above in enumerate(self._above(number))
                if above in bases and fits(path.steps, labels[depth:], deep=path.deep)
            ]
        return found

    def _above(self, number: int) -> list[int]:
        """The label paths down to this one, the empty one first."""
        chain = [number]
        while chain[-1] != ROOT:
            chain.append(int(self._paths.parents[chain[-1]]))
        return chain[::-1]

    def _bases(self, up: int) -> set[int]:
        """The label paths of the elements that are the given number of levels above rows."""
        bases: Int32s = np.flatnonzero(self._is_row).astype(np.int32)
        for _ in range(up):
            bases = self._paths.parents[bases[bases != ROOT]]
        return set(bases.tolist())


class _Columns:
    """The columns of a batch's rows, as texts."""

    def __init__(self, extractor: Extractor, batch: DocumentBatch, numbers: Int32s, rows: Int64s) -> None:
        self._extractor, self._batch, self._rows = extractor, batch, rows
        # After the elements come the document nodes, and after these one place for "above the document node".
        count, nothing = len(batch.name), len(batch.name) + len(batch)
        own = np.repeat(np.arange(count, nothing), np.diff(batch.offsets))
        above = np.where(batch.parent >= 0, batch.parent, own)
        self._parents = np.concatenate([above, np.full(len(batch) + 1, nothing)])
        order = np.argsort(numbers, kind="stable")
        used, first = np.unique(numbers[order], return_index=True)
        self._elements = dict(zip(used.tolist(), np.split(order, first[1:]), strict=True)) if len(used) else {}

    def texts(self, path: ColumnPath) -> list[str | None]:
        """The text that a path selects from each row; None where it selects nothing."""
        bases = self._rows
        for _ in range(path.up):
            bases = self._parents[bases]
        nodes = np.full(len(self._parents), -1, dtype=np.int64)
        found, owners = self._nodes(path)
        order = np.lexsort((found, owners))
        found, owners = found[order], owners[order]
        firsts = np.flatnonzero(np.diff(owners, prepend=-1))
        nodes[owners[firsts]] = found[firsts]
        return [None if node < 0 else self._text(path.leaf, node) for node in nodes[bases].tolist()]

    def _nodes(self, path: ColumnPath) -> tuple[Int64s, Int64s]:
        """The nodes that a path selects (elements, attributes or texts), and the rows that they belong to."""
        leaves = self._leaves(path.leaf)
        nodes, owners = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for number, elements in self._elements.items():
            for level in self._extractor.levels(path, number):
                above = elements
                for _ in range(level):
                    above = self._parents[above]
                mine = elements if leaves is None else leaves[elements]
                nodes.append(mine[mine >= 0])
                owners.append(above[mine >= 0])
        return np.concatenate(nodes), np.concatenate(owners)

    def _leaves(self, leaf: str) -> Int64s | None:
        """For each element, its first text node or its attribute of this name; -1 where it has none."""
        batch = self._batch
        if leaf == ".":
            return None
        leaves = np.full(len(batch.name), -1, dtype=np.int64)
        if leaf == "text()":
            leaves[batch.text_parent[::-1]] = np.arange(len(batch.text_parent))[::-1]
            return leaves
        wanted = [number for number in range(batch.name_count) if batch.name_of(number) == leaf[1:]]
        places = np.flatnonzero(np.isin(batch.attribute_name, wanted))
        leaves[np.searchsorted(batch.attribute_begin, places, side="right") - 1] = places
        return leaves

    def _text(self, leaf: str, node: int) -> str:
        batch = self._batch
        if leaf == ".":
            return batch.string_value(node).decode()
        return (batch.text_node(node) if leaf == "text()" else batch.attribute_value(node)).decode()


def fits(steps: Sequence[Step], labels: Sequence[str], *, deep: bool = False) -> bool:
    """Whether the steps match these labels to their end; or (`deep`) to any place above it."""
    places = {0}  # how many labels the steps so far may have matched
    for step in steps:
        nexts = range(min(places), len(labels)) if step.deep else places
        places = {at + 1 for at in nexts if at < len(labels) and step.name in ("*", labels[at])}
        if not places:
            return False
    return deep or len(labels) in places


def _change(text: str | None) -> str:
    if text is None or text.strip() not in CHANGES:
        found = "no value" if text is None else repr(text)[:60]
        raise DocumentError(
            f"the value that the path in `change` selects must be {' or '.join(map(repr, CHANGES))}, got {found}; "
            "correct the document or the path"
        )
    return text.strip()


def _place(batch: DocumentBatch, document: int, element: int) -> tuple[int | None, int | None]:
    """Line and column of an element; unknown for documents that are not in UTF-8."""
    if document in batch.encodings:
        return None, None
    begin = int(batch.data_offsets[document])
    before = batch.data[begin : begin + int(batch.position[element])].tobytes()
    return before.count(b"\n") + 1, len(before) - before.rfind(b"\n")


def _read_path(text: str, what: str, *, relative: bool = False) -> ColumnPath:
    up, leaf, deep, at, ended = 0, ".", False, 0, False
    steps: list[Step] = []
    while at < len(text):
        part = _STEP.match(text, at)
        if part is None or ended or (at and not part[1]) or (relative and not at and part[1]):
            raise SchemaError(f"{what} has the unsupported path '{text}'; supported: {_SUPPORTED}")
        at = part.end()
        below, word = part[1] == "//", part[2]
        if word == ".." and not steps and not below:
            up += 1
        elif word == "." and at - len(part[0]) == 0 and not text.startswith("/"):
            continue
        elif word == "text()" or word.startswith("@"):
            leaf, deep, ended = word, below, True
        elif word not in (".", ".."):
            steps.append(Step(below, word))
        else:
            raise SchemaError(f"{what} has the unsupported path '{text}'; supported: {_SUPPORTED}")
    if not text:
        raise SchemaError(f"{what} has an empty path; give a path of element names, such as 'prices/stock'")
    return ColumnPath(up, tuple(steps), leaf, deep)


_SUPPORTED = "names and *, with / and //; for columns also .. at the start, @name or text() at the end, or ."
