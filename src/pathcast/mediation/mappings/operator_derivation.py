"""Deriving operators from a correspondence, by the six rules in two phases (§2.3.2).

A *correspondence* maps local nodes to global ones: paths to paths, one to one, for elements and attributes
(`course/@code`). First all exchanges are found, from the root downwards, and applied to the local tree. Then every
other node is compared with its parent in the exchanged tree:

    the global node lies …                                          rule
    below the parent's own                                          it stays
    further below, and no local node corresponds to those between   Insert (one for each parent and path)
    below that of a sibling                                         Downgrade
    beside the parent's                                             Upgrade
    below that of the grandparent, and the parent has no image      Upgrade (ours: a group only the local schema has)
    anywhere else                                                   Move (ours), to the nearest ancestor whose image is
                                                                    above the global node; or Insert into the parent

Nodes whose names differ are renamed; attributes that are elements in the global schema become elements. A root whose
image is below the global root becomes the global root, and its children move down.

Invariant: a node that no rule explains stays unchanged, and is in `unexplained` with the reason. Nothing is guessed.
Cost: linear in both trees and in the inserted paths.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pathcast.errors import MappingError

from ..schemas.schema_tree import SchemaTree, is_attribute, name_of, parent_of, steps_of
from .mapping_operators import Downgrade, Exchange, Insert, Move, Operator, Rename, ToElement, Upgrade
from .operators_by_schema_node import Plan


@dataclass(slots=True)
class Derivation:
    """Operators in the order of the local tree, and the reasons why some nodes have none."""

    operators: list[Operator] = field(default_factory=list)
    unexplained: dict[str, str] = field(default_factory=dict)


def derive(local: SchemaTree, glob: SchemaTree, correspondence: Mapping[str, str]) -> Derivation:
    """The operators that transform documents of the local schema into the global one."""
    check_correspondence(local, glob, correspondence)
    return _Deriving(local, correspondence).run()


def check_correspondence(local: SchemaTree, glob: SchemaTree, correspondence: Mapping[str, str]) -> None:
    """`MappingError` unless both sides exist and no global node is taken twice."""
    taken: dict[str, str] = {}
    for here, there in correspondence.items():
        _check_node(local, here, "local")
        _check_node(glob, there, "global")
        if there in taken:
            raise MappingError(f"'{here}' and '{taken[there]}' cannot both correspond to '{there}'; remove one of them")
        if not is_attribute(here) and is_attribute(there):
            reason = "an element cannot become an attribute; choose an element"
            raise MappingError(f"'{here}' cannot correspond to '{there}': {reason}")
        taken[there] = here


def _check_node(tree: SchemaTree, path: str, which: str) -> None:
    try:
        node = tree[parent_of(path) if is_attribute(path) else path]
    except MappingError as error:
        raise MappingError(f"invalid path in the {which} schema: {error.reason}") from None
    if is_attribute(path) and name_of(path) not in node.attributes:
        known = ", ".join(node.attributes) or "none"
        raise MappingError(
            f"the {which} schema has no attribute '{name_of(path)}' at '{parent_of(path)}' (its attributes: "
            f"{known}); correct the correspondence"
        )


class _Deriving:
    def __init__(self, local: SchemaTree, correspondence: Mapping[str, str]) -> None:
        self.local = local
        root = local.root.name
        self.of = dict(correspondence)
        if root in self.of:
            self.of[root] = steps_of(self.of[root])[0]
        self.images = {there: here for here, there in self.of.items()}
        self.exchanged: set[str] = set()
        self.found = Derivation()

    def run(self) -> Derivation:
        exchanges = self._exchanges()
        for each in exchanges:
            if isinstance(each, Exchange):
                self.exchanged |= {each.node, f"{each.node}/{each.child}"}
        children = Plan(self.local, exchanges).children
        parents = {child: path for path, below in children.items() for child in below.values()}
        groups: dict[tuple[str, str, tuple[str, ...] | str], set[str]] = {}
        for path, node in self.local.paths.items():
            self._rename(path)
            self._attributes(path, node.attributes)
            if path in parents and path in self.of:
                self._move(path, parents[path], parents, children, groups)
        self.found.operators[:0] = exchanges
        self._enter(groups)
        return self.found

    def _exchanges(self) -> list[Operator]:
        """First phase: nodes whose parent's image lies below their own."""
        found: list[Operator] = []
        exchanged: set[str] = set()
        parents = {path: parent_of(path) for path in self.local.paths}
        for path in self.local.paths:
            above = parents[path]
            # An exchanged node has its old child as its parent: there is nothing to compare.
            if not above or above in exchanged or path not in self.of or above not in self.of:
                continue
            if parent_of(self.of[above]) != self.of[path]:
                continue
            operator = Exchange(above, name_of(path))
            try:
                Plan(self.local, [*found, operator])
            except MappingError as error:
                self.found.unexplained[path] = error.reason
                continue
            found.append(operator)
            exchanged.add(above)
            parents[path], parents[above] = parents[above], path
        return found

    def _rename(self, path: str) -> None:
        there = self.of.get(path)
        if there is not None and name_of(there) != name_of(path):
            self.found.operators.append(Rename(path, name_of(there)))

    def _attributes(self, path: str, attributes: Sequence[str]) -> None:
        owner = self.of.get(path)
        moved: dict[str, Operator] = {}
        for attribute in attributes:
            there = self.of.get(f"{path}/@{attribute}")
            if there is None:
                continue
            name = name_of(there)
            if (owner is None or parent_of(there) != owner) and not is_attribute(there):
                move = self._elsewhere(f"{path}/@{attribute}", there)
                if move is not None:
                    moved[attribute] = move
                    continue
            if owner is None or parent_of(there) != owner:
                reason = f"no operator can move it to '{there}': {_counterpart(path, owner)}; it stays unchanged"
                self.found.unexplained[f"{path}/@{attribute}"] = reason
            elif not is_attribute(there):
                moved[attribute] = ToElement(path, attribute, None if name == attribute else name)
            elif name != attribute:
                moved[attribute] = Rename(f"{path}/@{attribute}", name)
        self._keep_apart(path, attributes, moved)
        self.found.operators += moved.values()

    def _keep_apart(self, path: str, attributes: Sequence[str], moved: dict[str, Operator]) -> None:
        """Keep the name of an attribute whose new name belongs to another attribute that stays; then it stays, too."""
        waiting = [attribute for attribute in attributes if attribute not in moved]
        wanted = {each.name: attribute for attribute, each in moved.items() if isinstance(each, Rename)}
        while waiting:
            stays = waiting.pop()
            refused = wanted.get(stays)
            if refused is not None:
                del moved[refused]
                self.found.unexplained[f"{path}/@{refused}"] = f"'{path}' already has an attribute '{stays}'"
                waiting.append(refused)

    def _move(
        self,
        path: str,
        above: str,
        parents: Mapping[str, str],
        children: Mapping[str, Mapping[str, str]],
        groups: dict[tuple[str, str, tuple[str, ...] | str], set[str]],
    ) -> None:
        """Apply the rule that moves a node from below its parent to its place."""
        there, over = self.of[path], self.of.get(above)
        name = name_of(path)
        target = parent_of(there)
        if over is not None and target == over:
            return
        between = _between(over, there) if over is not None else None
        if between is not None and not any(step in self.images for step in between):
            groups.setdefault((above, Insert.kind, tuple(map(name_of, between))), set()).add(name)
            return
        for sibling, at in children[above].items():
            if at != path and self.of.get(at) == target:
                groups.setdefault((above, Downgrade.kind, sibling), set()).add(name)
                return
        beside = parent_of(over) if over is not None else self.of.get(parents.get(above, ""), "")
        if target and target == beside and above in parents:
            groups.setdefault((above, Upgrade.kind, ()), set()).add(name)
            return
        move = self._elsewhere(path, there)
        if move is not None:
            self.found.operators.append(move)
        elif between is not None:
            groups.setdefault((above, Insert.kind, tuple(map(name_of, between))), set()).add(name)
        else:
            self.found.unexplained[path] = (
                f"no operator can move it to '{there}': {_counterpart(above, over)}; it stays unchanged"
            )

    def _elsewhere(self, path: str, there: str) -> Move | None:
        """The move to the nearest ancestor whose image is above the global node: into a child, or into a new path."""
        is_value = is_attribute(path)
        chain = [parent_of(path)] if is_value else [path, parent_of(path)]
        while chain[-1]:
            above = chain[-1]
            if above in self.exchanged or path in self.exchanged:
                return None
            between = _between(self.of[above], there) if above in self.of else None
            if between is not None and (is_value or len(chain) > 2):
                name = name_of(there) if is_value else None
                into = self.images.get(between[0]) if len(between) == 1 else None
                if into is not None and parent_of(into) == above and into not in (*chain, *self.exchanged):
                    return Move(path, above, into=name_of(into), name=name)
                return Move(path, above, tuple(map(name_of, between)), name=name)
            chain.append(parent_of(above))
        return None

    def _enter(self, groups: Mapping[tuple[str, str, tuple[str, ...] | str], set[str]]) -> None:
        for (above, kind, more), names in groups.items():
            if kind == Insert.kind:
                assert isinstance(more, tuple)
                self.found.operators.append(Insert(above, more, frozenset(names)))
            elif kind == Downgrade.kind:
                assert isinstance(more, str)
                self.found.operators.append(Downgrade(above, frozenset(names), more))
            else:
                self.found.operators.append(Upgrade(above, frozenset(names)))


def _between(above: str, below: str) -> list[str] | None:
    """The nodes strictly between an ancestor and a node; None if it is none."""
    upper, lower = steps_of(above), steps_of(below)
    if lower[: len(upper)] != upper or len(lower) <= len(upper):
        return None
    return ["/".join(lower[:length]) for length in range(len(upper) + 1, len(lower))]


def _counterpart(parent: str, there: str | None) -> str:
    return f"its parent '{parent}' " + ("has no counterpart" if there is None else f"corresponds to '{there}'")
