"""Two readers on the same documents: compare their batches value by value.

Readers may differ in where a value lies (in the data or in the arena) and in the number of a name of the batch's own.
`differences` compares the values, the names and all the rest exactly, errors and the types of the arrays included.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pathcast.documents import DocumentBatch, Limits, Names
from pathcast.documents.expat_reader import BatchBuilder, Entities
from pathcast.documents.scanner.scanner import Scanner
from pathcast.errors import PathcastError

_COLUMNS = (
    "data", "data_offsets", "offsets", "parent", "depth", "end", "position",
    "attribute_begin", "attribute_length", "text_begin", "text_end", "text_parent", "text_length",
)  # fmt: skip


def by_expat(
    documents: Sequence[bytes],
    *,
    names: Names | None = None,
    limits: Limits | None = None,
    entities: Entities = "refuse",
    encodings: Mapping[int, str] | None = None,
) -> DocumentBatch:
    """The documents as the expat reader alone gives them."""
    names = Names() if names is None else names
    builder = BatchBuilder(names, len(names), limits or Limits(), entities)
    for index, document in enumerate(documents):
        try:
            builder.add(document, encoding=encodings.get(index) if encodings else None)
        except PathcastError as error:
            builder.fail(document, error)
    return builder.finish()


def by_scanner(
    documents: Sequence[bytes],
    *,
    names: Names | None = None,
    limits: Limits | None = None,
    entities: Entities = "refuse",
    encodings: Mapping[int, str] | None = None,
) -> DocumentBatch:
    """The documents as the scanner gives them, with expat for those that it passes on."""
    scanner = Scanner(Names() if names is None else names, limits or Limits(), entities)
    return scanner.read(documents, encodings=encodings)


def passed_on(documents: Sequence[bytes], scanner: Scanner | None = None) -> list[int]:
    """The numbers of the documents that the kernel does not decide alone."""
    scanner = scanner or Scanner(Names(), Limits(), "refuse")
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    data = np.frombuffer(b"".join(documents) + bytes(16), dtype=np.uint8)
    status = np.zeros(len(documents), dtype=np.int8)
    scanner._scan(data, offsets, scanner._buffers.current_names(), status, False)
    return list(map(int, np.flatnonzero(status)))


def differences(ours: DocumentBatch, theirs: DocumentBatch) -> list[str]:
    """The differences of two batches; empty when they agree."""
    found = [_difference(name, getattr(ours, name), getattr(theirs, name)) for name in _COLUMNS]
    if len(set(ours.own_names)) != len(ours.own_names):
        found.append("a name of the batch's own stands there twice")
    numbers = {name: number for number, name in enumerate({*ours.own_names, *theirs.own_names})}
    for column in ("name", "attribute_name"):
        mine, other = (_names(batch, getattr(batch, column), numbers) for batch in (ours, theirs))
        found.append(_difference(column, mine, other))
    for starts, lengths in (("attribute_start", "attribute_length"), ("text_start", "text_length")):
        values = [_values(batch, getattr(batch, starts), getattr(batch, lengths)) for batch in (ours, theirs)]
        found.append(_difference(f"the bytes of {starts}", *values))
        if getattr(ours, starts).dtype != getattr(theirs, starts).dtype:
            found.append(f"{starts} has another type")
    for attribute in ("known_count", "errors", "encodings"):
        mine, other = getattr(ours, attribute), getattr(theirs, attribute)
        found.append(f"{attribute}: {mine!r} against {other!r}" if mine != other else None)
    return [text for text in found if text is not None]


def _difference(column: str, mine: npt.NDArray[Any], other: npt.NDArray[Any]) -> str | None:
    if mine.dtype == other.dtype and np.array_equal(mine, other):
        return None
    return f"{column}: {mine[:20]!r} against {other[:20]!r}"


def _names(batch: DocumentBatch, column: npt.NDArray[np.int32], numbers: Mapping[str, int]) -> npt.NDArray[np.int32]:
    """Ids that mean the same in both batches."""
    assert column.dtype == np.int32
    if len(column) and not 0 <= column.min() <= column.max() < batch.name_count:
        return np.full(len(column), -1, dtype=np.int32)
    own = [batch.known_count + numbers[name] for name in batch.own_names]
    return np.array([*range(batch.known_count), *own], dtype=np.int32)[column]


def _values(
    batch: DocumentBatch, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int32]
) -> npt.NDArray[np.uint8]:
    """The bytes of all values, one after the other."""
    pool = np.concatenate([batch.data, batch.arena])
    places = np.where(starts >= 0, starts, len(batch.data) - 1 - starts)
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    index = np.repeat(places - (ends - lengths), lengths) + np.arange(total)
    return pool[index]


def shrunk(documents: list[bytes], fails: Callable[[list[bytes]], bool]) -> list[bytes]:
    """Fewer and shorter documents that still fail: parts are removed as long as the failure remains."""
    alone = next((each for each in documents if fails([each])), None)
    documents = _reduced(documents, fails) if alone is None else [alone]
    for index, document in enumerate(documents):

        def fails_with(data: bytes, index: int = index, rest: list[bytes] = documents) -> bool:
            return fails([*rest[:index], data, *rest[index + 1 :]])

        documents = [*documents[:index], _reduced(document, fails_with), *documents[index + 1 :]]
    return documents


Whole = TypeVar("Whole", list[bytes], bytes)


def _reduced(whole: Whole, fails: Callable[[Whole], bool]) -> Whole:
    """A sequence without the parts that it still fails without, large ones first."""
    size = len(whole)
    while size:
        begin, length = 0, len(whole)
        while begin < len(whole):
            smaller = whole[:begin] + whole[begin + size :]
            if fails(smaller):
                whole = smaller
            else:
                begin += size
        size = size // 2 if size > 1 or len(whole) == length else size
    return whole
