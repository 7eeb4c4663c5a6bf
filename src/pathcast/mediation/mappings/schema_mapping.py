"""Mappings from a publisher's schema to the global schema, as data and as a file.

A mapping consists of the local schema tree, the operators, and a version. A document names the version of the mapping
that it needs; an unknown version is an error of that document. The file is TOML, made to be read and edited:

    name = "cmu"
    version = 3

    schema = \"\"\"
    catalog
      course* @code
        title #text
    \"\"\"

    [correspondence]                  # kept, so that operators can be derived again
    "catalog/course" = "university/course"

    [[operators]]
    operator = "to-element"
    node = "catalog/course"
    attribute = "code"

Invariant: a mapping never changes; `Mapping.read(mapping.write())` is equal to it.
"""

import json
import os
import re
import tomllib
from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, get_args

from pathcast.documents.schema import Occurrence
from pathcast.errors import LimitError, MappingError

from ..schemas.schema_tree import SchemaNode, SchemaTree, nodes_of
from .document_object_tree import Item
from .mapping_operators import Operator, as_plain, from_plain
from .object_tree_rewriter import rewrite
from .operator_derivation import derive
from .operators_by_schema_node import Plan

# Rewriting looks children up in a table of nodes and names, four bytes per pair.
_MOST_PAIRS = 1 << 26
# A word of a line; a namespace URI may contain blanks.
_WORD = re.compile(r"(?:\{[^}]*\}|\S)+")
_KEYS = ("name", "version", "schema", "correspondence", "operators", "unexplained")


@dataclass(frozen=True, slots=True)
class Mapping:
    """From one local schema to the global one."""

    name: str
    local: SchemaTree
    operators: tuple[Operator, ...]
    correspondence: Table[str, str] = field(default_factory=dict)
    unexplained: Table[str, str] = field(default_factory=dict)
    version: int = 1
    plan: Plan = field(init=False, repr=False, compare=False)
    fingerprint: bytes = field(init=False, repr=False, compare=False)
    """Sixteen bytes that identify the mapping."""

    def __post_init__(self) -> None:
        names = {node.name for node in self.local.paths.values()}
        if len(self.local) * len(names) > _MOST_PAIRS:
            raise LimitError(
                f"the schema of '{self.name}' has {len(self.local):,} elements and {len(names):,} names, and so "
                f"{len(self.local) * len(names):,} pairs; at most {_MOST_PAIRS:,} pairs are allowed; map a part "
                "of the schema"
            )
        object.__setattr__(self, "plan", Plan(self.local, self.operators))
        object.__setattr__(self, "fingerprint", blake2b(self.write().encode(), digest_size=16).digest())

    @classmethod
    def derive(
        cls, name: str, local: SchemaTree, glob: SchemaTree, correspondence: Table[str, str], *, version: int = 1
    ) -> "Mapping":
        """The mapping derived from a correspondence of paths."""
        found = derive(local, glob, correspondence)
        bare = SchemaTree(local.root)  # a mapping travels with documents, without samples
        return cls(name, bare, tuple(found.operators), dict(correspondence), found.unexplained, version)

    def edited(self, operators: Sequence[Operator]) -> "Mapping":
        """The same mapping with other operators, as its next version."""
        return replace(self, operators=tuple(operators), version=self.version + 1)

    def numbered(self, version: int) -> "Mapping":
        """The same mapping under another number."""
        return self if version == self.version else replace(self, version=version)

    def check(self) -> list[str]:
        """One sentence per node that could not be mapped; empty when all of the local schema is mapped."""
        found = [
            f"'{path}' has no counterpart in the global schema; it stays unchanged"
            for path in nodes_of(self.local)
            if path not in self.correspondence
        ]
        return [*found, *(f"'{path}': {reason}" for path, reason in self.unexplained.items())]

    def rewrite(self, document: Item) -> Item:
        """A document in the global schema."""
        return rewrite(document, self.plan)

    def write(self) -> str:
        """The mapping as the text of a TOML file."""
        lines = [
            f"name = {_text(self.name)}",
            f"version = {self.version}",
            "",
            'schema = """',
            _lines(self.local),
            '"""',
        ]
        for key, table in (("correspondence", self.correspondence), ("unexplained", self.unexplained)):
            if table:
                lines += ["", f"[{key}]", *(f"{_text(path)} = {_text(value)}" for path, value in table.items())]
        for operator in self.operators:
            lines += ["", "[[operators]]", *(f"{key} = {_value(value)}" for key, value in as_plain(operator).items())]
        return "\n".join(lines) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the mapping to a file, for people to read and edit."""
        Path(path).write_text(self.write(), encoding="utf-8")

    @classmethod
    def read(cls, text: str) -> "Mapping":
        """The mapping of a TOML text; `MappingError` states the problem."""
        try:
            table = tomllib.loads(text)
        except RecursionError:
            raise MappingError(
                "the mapping is not valid TOML: values are nested too deeply; reduce the nesting"
            ) from None
        except ValueError as error:  # of TOML, or of a number of thousands of digits
            raise MappingError(f"the mapping is not valid TOML: {error}; correct it") from None
        if unknown := table.keys() - set(_KEYS):
            raise MappingError(f"the mapping has the unknown key '{min(unknown)}'; use one of {', '.join(_KEYS)}")
        operators = _typed(table, "operators", list, [])
        made = []
        for number, plain in enumerate(operators, 1):
            if not isinstance(plain, dict):
                raise MappingError(
                    f"operator {number} must be a table, such as [[operators]] in TOML, got {plain!r:.60}"
                )
            try:
                made.append(from_plain(plain))
            except MappingError as error:
                raise MappingError(f"invalid operator {number}: {error.reason}") from None
        return cls(
            name=_typed(table, "name", str),
            local=read_tree(_typed(table, "schema", str)),
            operators=tuple(made),
            correspondence=_texts(table, "correspondence"),
            unexplained=_texts(table, "unexplained"),
            version=_typed(table, "version", int, 1),
        )

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Mapping":
        """Read a file that `save` wrote, possibly edited since."""
        try:
            return cls.read(Path(path).read_text(encoding="utf-8-sig"))
        except UnicodeDecodeError:
            raise MappingError(f"the file {os.fspath(path)} is not UTF-8; save it as UTF-8") from None
        except OSError as error:
            raise MappingError(f"cannot read {os.fspath(path)}: {error.strerror}; check the path") from None
        except ValueError:  # a NUL character, or a character that the file system's encoding lacks
            raise MappingError(
                f"cannot read {os.fspath(path)!r}: the name contains a NUL or an invalid character; give another path"
            ) from None
        except MappingError as error:
            raise MappingError(f"{os.fspath(path)}: {error.reason}") from None


def read_tree(text: str) -> SchemaTree:
    """The schema tree of an indented text, in the format of `str(tree)`."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise MappingError("the text of the schema is empty; give at least the root element")
    nodes: list[tuple[SchemaNode, list[SchemaNode]]] = []  # the open nodes, with their children so far
    for number, line in lines:
        depth = (len(line) - len(line.lstrip(" "))) // 2
        if depth > len(nodes) or (nodes and depth == 0):
            raise MappingError(
                f"line {number} of the schema, '{line.strip()}', has the wrong indentation; indent by two spaces "
                "per level"
            )
        _close(nodes, depth)
        nodes.append((_read_node(line.strip(), number), []))
    _close(nodes, 1)
    return SchemaTree(_with_children(*nodes[0]))


def _close(nodes: list[tuple[SchemaNode, list[SchemaNode]]], depth: int) -> None:
    """Give the nodes deeper than this to their parents."""
    while len(nodes) > depth:
        closed = _with_children(*nodes.pop())
        nodes[-1][1].append(closed)


def _with_children(node: SchemaNode, children: list[SchemaNode]) -> SchemaNode:
    return replace(node, children=tuple(children))


def _read_node(text: str, number: int) -> SchemaNode:
    name, *more = _WORD.findall(text)
    cardinality: Occurrence = ""
    for mark in get_args(Occurrence):
        if mark and name.endswith(mark):
            name, cardinality = name[:-1], mark
    attributes, has_text = [], False
    for word in more:
        if word == "#text":
            has_text = True
        elif word.startswith("@") and len(word) > 1:
            attributes.append(word[1:])
        else:
            raise MappingError(
                f"line {number} of the schema is malformed: '{word}' is neither @attribute nor #text; put each "
                "element on its own line"
            )
    if not name:
        raise MappingError(
            f"line {number} of the schema has an element without a name; write the name before '?', '*' or '+'"
        )
    return SchemaNode(name, cardinality, has_text, tuple(attributes))


_MISSING: Any = object()


def _typed(table: Table[str, Any], key: str, kind: type, default: Any = _MISSING) -> Any:
    value = table.get(key, default)
    if value is _MISSING:
        raise MappingError(f"the key '{key}' is missing; add the key with {_KINDS[kind]} as its value")
    if not isinstance(value, kind) or isinstance(value, bool):
        raise MappingError(f"the key '{key}' must be {_KINDS[kind]}, got {value!r}")
    return value


_KINDS = {str: "a string", int: "an int", list: "a list of tables", dict: "a table"}


def _texts(table: Table[str, Any], key: str) -> dict[str, str]:
    found = _typed(table, key, dict, {})
    for path, value in found.items():
        if not isinstance(value, str):
            raise MappingError(f"the value of '{path}' under the key '{key}' must be a string, got {value!r}")
    return dict(found)


def _text(value: str) -> str:
    """A string in TOML syntax; JSON differs only in one control character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lines(tree: SchemaTree) -> str:
    """A tree in a text of several lines as TOML writes it; only the address of a namespace has what must be escaped."""
    return str(tree).replace("\\", "\\\\").replace('"', '\\"')


def _value(value: str | list[str]) -> str:
    return _text(value) if isinstance(value, str) else f"[{', '.join(map(_text, value))}]"
