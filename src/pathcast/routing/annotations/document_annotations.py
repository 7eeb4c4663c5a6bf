"""Annotations: facts about a document that save the next router work (§3.1 of the paper).

    +s  PS   an aggregated subscription matches, with bindings of its wildcards          forward before parsing
             or without: then a bit
    +d  PD   where the last occurrence of a data pattern ends                            stop looking for it there
    -s  NS   aggregated subscriptions that do not match                                  skip subscriptions under them
    -d  ND   data patterns that do not occur                                             skip subscriptions with them
    +t       the document's structure (`structure_encoder.py`)                        match without parsing

Aggregates and data patterns are numbers in the advertisement that the receiver made; `version` is the version of that
advertisement. `annotation_header_codec.py` defines the wire format.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pathcast.kernels import Bools, Int64s

Mask = Bools
Labels = tuple[str, ...]

KINDS = ("+s", "+d", "-s", "-d", "+t")


# A binding with more characters, including its labels, is not cached, to bound the memory for hostile senders.
SHORT = 256


def is_short(wildcards: Iterable[tuple[int, Labels]]) -> bool:
    """Whether the bindings of wildcards take little memory."""
    return sum([1 + len(label) for _, labels in wildcards for label in labels]) <= SHORT


class Bound(NamedTuple):
    """An aggregate that matches, and the labels of some of its wildcards, by the wildcards' numbers.

    A `*` stands for one label, a `//` for any number of labels, including none.
    """

    aggregate: int
    wildcards: tuple[tuple[int, Labels], ...]


class LastPlaces(NamedTuple):
    """Data patterns, ascending, and for each the number of start tags before the end of its last occurrence.

    The paper counts end tags (the l-th one ends the first element of the pattern's last occurrence); the number of
    start tags before it is equivalent, and engines count start tags.
    """

    patterns: Int64s
    places: Int64s

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> "LastPlaces | None":
        """The last places from pairs of a pattern and a place; None without pairs."""
        columns = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
        return cls(columns[:, 0].copy(), columns[:, 1].copy()) if len(columns) else None


@dataclass(frozen=True, slots=True, eq=False)
class Annotations:
    """The annotations of one document on one link; None or empty if there are none of a kind.

    `holding` are the aggregates that are known to match (PS without bindings), `failed` those that are known not to
    match; an aggregate may be neither.
    """

    version: int = 0
    bindings: tuple[Bound, ...] = ()
    last_places: LastPlaces | None = None
    failed: Mask | None = None
    absent: Mask | None = None
    structure: bytes | None = None
    holding: Mask | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Annotations):
            return NotImplemented
        return (
            (self.version, self.bindings, self.structure) == (other.version, other.bindings, other.structure)
            and _same(self.failed, other.failed)
            and _same(self.absent, other.absent)
            and _same(self.holding, other.holding)
            and all(map(_same, self.last_places or (None, None), other.last_places or (None, None)))
        )

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    def __bool__(self) -> bool:
        return bool(
            self.bindings
            or self.last_places is not None
            or self.failed is not None
            or self.absent is not None
            or self.holding is not None
            or self.structure is not None
        )


NOTHING = Annotations()


def _same(one: Mask | Int64s | None, other: Mask | Int64s | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
