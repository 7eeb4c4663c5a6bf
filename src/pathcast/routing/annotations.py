"""Annotations: what a router knows of a document that spares the next router work (§3.1 of the paper).

    +s  PS   an aggregated subscription matches, with what stood for its wildcards       forward before parsing
    +d  PD   where the last occurrence of a data pattern ends                            stop looking for it there
    -s  NS   aggregated subscriptions that don't match                                   skip what they cover
    -d  ND   data patterns that don't occur                                              skip what contains them
    +t       the document's structure (`structure.py`)                                   match without parsing

Aggregates and data patterns are numbers in the advertisement that the receiver made; `version` is the version of that
advertisement. On the wire: `wire.py`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Labels = tuple[str, ...]

KINDS = ("+s", "+d", "-s", "-d", "+t")


class Bound(NamedTuple):
    """An aggregate that matches, and the labels that stood for some of its wildcards, by the wildcards' places.

    A `*` stands for one label, a `//` for any number of them, none included.
    """

    aggregate: int
    wildcards: tuple[tuple[int, Labels], ...]


class LastPlace(NamedTuple):
    """A data pattern, and how many start tags come before the end of the element in which it occurs last.

    The paper counts end tags (the l-th one ends the first element of the pattern's last occurrence); start tags before
    it say the same and are what engines count.
    """

    pattern: int
    place: int


@dataclass(frozen=True, slots=True, eq=False)
class Annotations:
    """The annotations of one document on one link; None and empty where there are none of a kind."""

    version: int = 0
    bindings: tuple[Bound, ...] = ()
    last_places: tuple[LastPlace, ...] = ()
    failed: Mask | None = None
    absent: Mask | None = None
    structure: bytes | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Annotations):
            return NotImplemented
        return (
            (self.version, self.bindings, self.last_places, self.structure)
            == (other.version, other.bindings, other.last_places, other.structure)
            and _same(self.failed, other.failed)
            and _same(self.absent, other.absent)
        )

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    def __bool__(self) -> bool:
        return bool(
            self.bindings
            or self.last_places
            or self.failed is not None
            or self.absent is not None
            or self.structure is not None
        )


NOTHING = Annotations()


def _same(one: Mask | None, other: Mask | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
