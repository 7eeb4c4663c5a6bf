"""An explanation as data: frozen, printable with `str`, and convertible to a dictionary for JSON.

An `Explanation` has a `Finding` for each step of the pattern, up to the one that fails. A finding is about one step or
condition: whether it holds, where, and what was found there; its `parts` are the predicates of a step, the steps of a
path, the alternatives of an `or`.

A finding shows a few of its nodes (`SHOWN`), and has their number in `count`. A long value is cut after 200 characters,
and before the text that `contains` looks for if that is far inside; the path of a deeply nested element has `…` in its
middle.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

SHOWN = 3
"""The most places that one finding shows."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node of the document: its path, and the line and column (from 1) where its element's start tag begins.

    `value` is the node's string-value if a value was tested, otherwise None.
    """

    path: str
    line: int
    column: int
    value: str | None = None

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}, column {self.column}"


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A node that would satisfy a step, except for the difference given in `but`."""

    but: str
    place: Place

    def __str__(self) -> str:
        return f"{self.but}: {self.place}"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result for one step or condition, `text`.

    kind: `step` (of a path) or `condition` (in a predicate). holds: whether it holds. places: where, starting with the
    one that `parts` are about; for a miss, the nearest first. count: the number of such places. reason: why it does not
    hold, in words, if that is decided here and not in a part. elsewhere: the nearest match for a missing node.
    """

    kind: str
    text: str
    holds: bool
    places: tuple[Place, ...] = ()
    count: int = 0
    reason: str = ""
    elsewhere: Elsewhere | None = None
    parts: tuple["Finding", ...] = ()

    @property
    def misses(self) -> Iterator["Finding"]:
        """The findings that decide a miss: this one, or some of its parts."""
        if self.holds:
            return
        if self.reason:
            yield self
            return
        for part in self.parts:
            yield from part.misses


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a document matches a subscription, or what keeps it from matching.

    xpath: the subscription as written. pattern: its normal form, whose steps are explained. cost: the subscription's
    share of the matcher's work, empty if unknown.
    """

    id: int
    subscriber: str | None
    xpath: str
    pattern: str
    matches: bool
    steps: tuple[Finding, ...]
    cost: str = ""

    def __bool__(self) -> bool:
        """Whether the document matches."""
        return self.matches

    @property
    def misses(self) -> tuple[Finding, ...]:
        """The findings that keep the document from matching: one, or one for each alternative of an `or`."""
        return tuple(miss for step in self.steps for miss in step.misses)

    @property
    def nearest(self) -> str:
        """The nearest miss in a sentence, ``@id` is 7, wanted 9, line 12`; empty when the document matches."""
        return "; ".join(map(_sentence, self.misses))

    def as_dict(self) -> dict[str, Any]:
        """Everything as dictionaries, lists, strings, numbers and None."""
        return {
            "id": self.id,
            "subscriber": self.subscriber,
            "xpath": self.xpath,
            "pattern": self.pattern,
            "matches": self.matches,
            "nearest": self.nearest,
            "steps": [_listed(asdict(step)) for step in self.steps],
            "cost": self.cost,
        }

    def __str__(self) -> str:
        from .explanation_text import lines

        return "\n".join(text for text, _ in lines(self))


def _sentence(miss: Finding) -> str:
    sentence = f"{miss.reason}, line {miss.places[0].line}" if miss.places else miss.reason
    near = miss.elsewhere
    return sentence if near is None else f"{sentence} ({near.but}, line {near.place.line})"


def _listed(value: Any) -> Any:
    """Tuples as lists, as in JSON."""
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, tuple | list) else value
