"""XPath expressions as trees: printed for lxml and Pathcast, taken apart when a failing one is made smaller.

Every tree prints as XPath that both accept; white space is put in at random between tokens.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

_PART_OF_A_NAME = re.compile(r"[\w.·\-]")


@dataclass(frozen=True)
class Step:
    """`axis` is what stands before the test: `/`, `//`, or nothing at the start of a relative path."""

    axis: str
    test: str
    predicates: tuple["Condition", ...] = ()

    def tokens(self) -> Iterator[str]:
        yield self.axis
        yield from ("@", self.test[1:]) if self.test.startswith("@") else _called(self.test)
        for predicate in self.predicates:
            yield "["
            yield from predicate.tokens()
            yield "]"


@dataclass(frozen=True)
class Path:
    steps: tuple[Step, ...]

    def tokens(self) -> Iterator[str]:
        for step in self.steps:
            yield from step.tokens()


@dataclass(frozen=True)
class Comparison:
    path: Path
    operator: str
    literal: str
    mirrored: bool

    def tokens(self) -> Iterator[str]:
        path = list(self.path.tokens())
        yield from (self.literal, self.operator, *path) if self.mirrored else (*path, self.operator, self.literal)


@dataclass(frozen=True)
class Call:
    function: str
    path: Path
    literal: str

    def tokens(self) -> Iterator[str]:
        yield from (self.function, "(", *self.path.tokens(), ",", self.literal, ")")


@dataclass(frozen=True)
class Negation:
    condition: "Condition"

    def tokens(self) -> Iterator[str]:
        yield from ("not", "(", *self.condition.tokens(), ")")


@dataclass(frozen=True)
class Junction:
    """`and` or `or`, in brackets or not: without them, what is around it may bind its parts otherwise."""

    operator: str
    parts: tuple["Condition", ...]
    bracketed: bool

    def tokens(self) -> Iterator[str]:
        yield from ("(",) if self.bracketed else ()
        for index, part in enumerate(self.parts):
            yield from (self.operator,) if index else ()
            yield from part.tokens()
        yield from (")",) if self.bracketed else ()


Condition: TypeAlias = Path | Comparison | Call | Negation | Junction


def _called(test: str) -> tuple[str, ...]:
    return ("text", "(", ")") if test == "text()" else (test,)


def expression(path: Path, random: Random | None = None) -> str:
    """The path as XPath; with `random`, white space wherever the grammar lets it stand."""
    text = ""
    for token in filter(None, path.tokens()):
        if text and _run_together(text[-1], token[0]):
            text += " "
        elif random is not None and random.random() < 0.02:
            text += random.choice((" ", "\t", "\n", "  "))
        text += token
    return text


def _run_together(before: str, after: str) -> bool:
    """Whether two tokens would become one, or another one, without space between them."""
    return bool(_PART_OF_A_NAME.match(before) and _PART_OF_A_NAME.match(after))
