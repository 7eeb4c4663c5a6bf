"""The operators that turn a local document into a global one, as plain data: the six of the paper (§2.3.1), and Move.

Operators name nodes by their paths in the local schema tree, and children by their local names, regardless of other
operators. Exchanges apply first, from the root downwards; their result is an exchanged tree whose nodes keep their
names and identity. All other operators then apply at once: no operator sees the effect of another. Each child moves to
the place that its parent's operators assign, together with the elements that its own operators upgrade.

The resulting place (order matters for the first of several nodes, and for the text of an element):

    Rename(E, name)       where it was, with another name; also for an attribute, `E/@a` (of two that get one name in a
                          document, the schema knowing but one of them, the first stays)
    ToElement(E, a)       at the beginning of E
    Insert(E, p/q, S)     the children S in one new p/q, at the end of E; no p/q when there are no such children
    Upgrade(E, S)         the children S right after E; where E is the root, they stay
    Downgrade(E, S, F)    the children S at the end of the first F; where there is no F, they stay
    Exchange(E, F)        each child F in E's place, with E (without its F) at its end; where there is no F, E stays
    Move(N, A, p/q)       N, from further down in A, in one new p/q at the end of A, as with Insert; N may be an
                          attribute, `E/@a`, which becomes an element; with `into` instead of a path, at the end of the
                          first child of that name of A; where there is none, after the child of A that N was in

`children=None` means all child elements: the paper's Insert⁺ and Upgrade⁺, which need not wait for anything.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from pathcast.errors import MappingError

from ..schemas.schema_tree import steps_of


@dataclass(frozen=True, slots=True)
class Rename:
    """Give an element, or an attribute (`E/@a`), another name."""

    node: str
    name: str
    kind: ClassVar[str] = "rename"


@dataclass(frozen=True, slots=True)
class ToElement:
    """Make an attribute of an element its child; with `name`, under another name."""

    node: str
    attribute: str
    name: str | None = None
    kind: ClassVar[str] = "to-element"


@dataclass(frozen=True, slots=True)
class Insert:
    """Put children of an element into a new path below it."""

    node: str
    path: tuple[str, ...]
    children: frozenset[str] | None = None
    kind: ClassVar[str] = "insert"


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Make children of an element its siblings."""

    node: str
    children: frozenset[str] | None = None
    kind: ClassVar[str] = "upgrade"


@dataclass(frozen=True, slots=True)
class Downgrade:
    """Make children of an element children of another of its children."""

    node: str
    children: frozenset[str]
    into: str
    kind: ClassVar[str] = "downgrade"


@dataclass(frozen=True, slots=True)
class Exchange:
    """Swap an element with one of its children."""

    node: str
    child: str
    kind: ClassVar[str] = "exchange"


@dataclass(frozen=True, slots=True)
class Move:
    """Put an element, or an attribute as an element, into an ancestor: at its end, in a new path, or in a child."""

    node: str
    above: str
    path: tuple[str, ...] = ()
    into: str | None = None
    name: str | None = None
    kind: ClassVar[str] = "move"


Operator = Rename | ToElement | Insert | Upgrade | Downgrade | Exchange | Move
KINDS: Mapping[str, type[Operator]] = {
    kind.kind: kind for kind in (Rename, ToElement, Insert, Upgrade, Downgrade, Exchange, Move)
}


def as_plain(operator: Operator) -> dict[str, Any]:
    """An operator as a table of a TOML file; `from_plain` reads it."""
    plain: dict[str, Any] = {"operator": operator.kind}
    for each in fields(operator):
        value = getattr(operator, each.name)
        if value is None or value == ():
            continue
        if each.name == "children":
            value = sorted(value)
        elif each.name == "path":
            value = "/".join(value)
        plain[each.name] = value
    return plain


def from_plain(plain: Mapping[str, Any]) -> Operator:
    """The operator of a table; `MappingError` names the wrong key, and the known ones."""
    kind = plain.get("operator")
    if not isinstance(kind, str) or kind not in KINDS:
        raise MappingError(f"the key 'operator' must be one of {', '.join(KINDS)}, got {kind!r}")
    made = KINDS[kind]
    known = {each.name for each in fields(made)}
    if unknown := plain.keys() - known - {"operator"}:
        raise MappingError(
            f"operator {kind} has the unknown key '{min(unknown)}'; use one of {', '.join(sorted(known))}"
        )
    values: dict[str, Any] = {}
    for key, value in plain.items():
        if key == "operator":
            continue
        if key == "children":
            if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
                raise MappingError(
                    f"the key 'children' of operator {kind} must be a list of at least one name, got {value!r}"
                )
            values[key] = frozenset(value)
            continue
        if not isinstance(value, str) or not value:
            raise MappingError(f"the key '{key}' of operator {kind} must be a non-empty string, got {value!r}")
        values[key] = steps_of(value) if key == "path" else value
    try:
        return made(**values)
    except TypeError:
        missing = [each.name for each in fields(made) if each.name not in values and each.name in _REQUIRED[kind]]
        raise MappingError(f"operator {kind} lacks the key '{missing[0]}'; add it") from None


_REQUIRED: Mapping[str, Iterable[str]] = {
    "rename": ("node", "name"),
    "to-element": ("node", "attribute"),
    "insert": ("node", "path"),
    "upgrade": ("node",),
    "downgrade": ("node", "children", "into"),
    "exchange": ("node", "child"),
    "move": ("node", "above"),
}
