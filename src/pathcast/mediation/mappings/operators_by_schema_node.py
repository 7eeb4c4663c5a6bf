"""Plans: the operators of a mapping, checked against the local schema tree and grouped by node.

To rewrite an element, a rewriter needs its new name, its attributes, and one *place* for each of its children. A plan
derives them from all operators of a node, once per mapping; every rewriter uses the plan.

Invariant: a child has one place; the places from parent to child form no cycle; a plan is immutable.
Cost: linear in schema nodes and operators.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from pathcast.errors import MappingError

from ..schemas.schema_tree import SchemaTree, is_attribute, name_of, parent_of
from .mapping_operators import Downgrade, Exchange, Insert, Move, Operator, Rename, ToElement, Upgrade


@dataclass(frozen=True, slots=True)
class Into:
    """At the end of the element, or of the one this many levels further up, inside a new path."""

    path: tuple[str, ...]
    up: int = 0


@dataclass(frozen=True, slots=True)
class Up:
    """Right after the element."""


@dataclass(frozen=True, slots=True)
class Down:
    """At the end of the first child of this name, of the element or of the one this many levels further up.

    Without such a child: at the old place, or after the child that it was in.
    """

    into: str
    up: int = 0


Place = Into | Up | Down


@dataclass(slots=True)
class NodePlan:
    """The changes to the elements at one node of the local schema tree, and to their children."""

    path: str
    name: str
    attributes: dict[str, str] = field(default_factory=dict)  # new names of attributes
    elements: list[tuple[str, str]] = field(default_factory=list)  # attributes that become children, and their names
    moved: list[tuple[str, str, Into | Down]] = field(
        default_factory=list
    )  # attributes that become elements further up
    exchange: str | None = None  # the child that replaces it
    places: dict[str, Place] = field(default_factory=dict)  # of children that move, by name
    elsewhere: Place | None = None  # of all children that `places` does not name

    def place(self, child: str) -> Place | None:
        """Where a child goes; None: it stays."""
        return self.places.get(child, self.elsewhere)

    @property
    def leaving(self) -> set[str]:
        """The attributes that become elements."""
        return {name for name, _ in self.elements} | {name for name, _, _ in self.moved}

    @property
    def is_plain(self) -> bool:
        """Whether all children keep their places."""
        return not self.places and self.elsewhere is None and self.exchange is None


class Plan:
    """The changes to the elements at each node, by path."""

    def __init__(self, tree: SchemaTree, operators: Iterable[Operator]) -> None:
        self.tree = tree
        self.operators = tuple(operators)
        self.nodes = {path: NodePlan(path, node.name) for path, node in tree.paths.items()}
        for operator in self.operators:
            if isinstance(operator, Exchange):
                self._exchange(operator)
        # The root and each node's children after the exchanges.
        self.root = self._root()
        self.children = self._exchanged_children()
        # What comes to each node from further down.
        self.incoming: dict[str, list[Into | Down]] = {}
        for operator in self.operators:
            self._enter(operator)
        for plan in self.nodes.values():
            self._check_attributes(plan)
            self._check_circles(plan)

    def __getitem__(self, path: str) -> NodePlan:
        return self.nodes[path]

    # Entering operators.

    def _enter(self, operator: Operator) -> None:
        match operator:
            case Rename():
                self._rename(operator)
            case ToElement():
                self._to_element(operator)
            case Insert(children=children):
                if not operator.path:
                    _refuse(operator, "the new path is empty; give at least one element name")
                self._put(operator, children, Into(operator.path))
            case Upgrade(children=children):
                if operator.node == self.root:
                    _refuse(operator, "the children of the root cannot move up; choose another element")
                self._put(operator, children, Up())
            case Downgrade(children=children, into=into):
                if into in children:
                    _refuse(operator, f"'{into}' cannot be moved into itself; remove it from children")
                self._child(operator, into)
                self._put(operator, children, Down(into))
            case Move():
                self._move(operator)

    def _node(self, operator: Operator, path: str) -> NodePlan:
        if path not in self.nodes:
            try:
                self.tree[path]
            except MappingError as error:
                _refuse(operator, error.reason)
        return self.nodes[path]

    def _rename(self, operator: Rename) -> None:
        path = operator.node
        if not is_attribute(path):
            plan = self._node(operator, path)
            if plan.name != self.tree[path].name:
                _refuse(operator, f"'{path}' is already renamed to '{plan.name}'; remove one of the operators")
            plan.name = operator.name
            return
        plan, attribute = self._node(operator, parent_of(path)), name_of(path)
        self._attribute(operator, plan, attribute)
        plan.attributes[attribute] = operator.name

    def _to_element(self, operator: ToElement) -> None:
        plan = self._node(operator, operator.node)
        self._attribute(operator, plan, operator.attribute)
        plan.elements.append((operator.attribute, operator.name or operator.attribute))

    def _attribute(self, operator: Operator, plan: NodePlan, attribute: str) -> None:
        known = self.tree[plan.path].attributes
        if attribute not in known:
            _refuse(
                operator, f"'{plan.path}' has no attribute '{attribute}'; its attributes: {', '.join(known) or 'none'}"
            )
        if attribute in plan.attributes or attribute in plan.leaving:
            _refuse(
                operator,
                f"another operator already moves or renames '{plan.path}/@{attribute}'; remove one of them",
            )

    def _put(self, operator: Insert | Upgrade | Downgrade, children: frozenset[str] | None, place: Place) -> None:
        plan = self._node(operator, operator.node)
        if children is None:
            if plan.elsewhere is not None:
                _refuse(operator, "another operator already moves all children; remove one of the operators")
            plan.elsewhere = place
            return
        if not children:
            _refuse(operator, "the list of children is empty; name a child, or omit `children` to move all")
        for child in sorted(children):
            self._child(operator, child)
            if child in plan.places:
                _refuse(operator, f"another operator already moves the child '{child}'; remove one of the operators")
            plan.places[child] = place

    def _move(self, operator: Move) -> None:
        path, is_value = operator.node, is_attribute(operator.node)
        plan = self._node(operator, parent_of(path))
        if is_value:
            self._attribute(operator, plan, name_of(path))
        else:
            self._child(operator, name_of(path))
        chain = self._chain(operator, plan.path)
        up = len(chain) - 1
        if not is_value and not up:
            _refuse(operator, "its parent is the ancestor to move to; use insert or downgrade")
        place: Into | Down = Into(operator.path, up)
        if operator.into is not None:
            inside = ([path] if not is_value else []) if not up else [chain[-2]]
            if operator.path or f"{operator.above}/{operator.into}" in inside:
                _refuse(operator, f"'{operator.into}' contains it, or a path is given, too; choose another child")
            if operator.into not in self.children[operator.above]:
                known = ", ".join(self.children[operator.above]) or "none"
                _refuse(operator, f"'{operator.above}' has no child '{operator.into}'; its children: {known}")
            place = Down(operator.into, up)
        self.incoming.setdefault(operator.above, []).append(place)
        if is_value:
            plan.moved.append((name_of(path), operator.name or name_of(path), place))
        elif name_of(path) in plan.places:
            _refuse(operator, "another operator already moves it; remove one of the operators")
        else:
            plan.places[name_of(path)] = place

    def _chain(self, operator: Move, path: str) -> list[str]:
        """The nodes from a node up to the ancestor to move to; none of them may be part of an exchange."""
        chain = [path]
        while chain[-1] != operator.above:
            above = parent_of(chain[-1])
            if not above:
                _refuse(operator, f"'{operator.above}' is no ancestor of it; choose an ancestor")
            chain.append(above)
        nodes = chain if is_attribute(operator.node) else [operator.node, *chain]
        for each in nodes:
            above = parent_of(each)
            if self.nodes[each].exchange or (above and self.nodes[above].exchange == name_of(each)):
                _refuse(operator, f"'{each}' is part of an exchange; move it by exchanges alone")
        return chain

    def _child(self, operator: Insert | Upgrade | Downgrade | Move, child: str) -> None:
        path = parent_of(operator.node) if isinstance(operator, Move) else operator.node
        known = self.children[self._node(operator, path).path]
        if child not in known:
            _refuse(operator, f"'{path}' has no child '{child}'; its children: {', '.join(known) or 'none'}")

    def _check_attributes(self, plan: NodePlan) -> None:
        gone = plan.leaving
        taken: dict[str, str] = {}
        for attribute in self.tree[plan.path].attributes if plan.attributes else ():
            name = plan.attributes.get(attribute, attribute)
            if attribute not in gone and (other := taken.setdefault(name, attribute)) != attribute:
                renamed = attribute if attribute in plan.attributes else other
                raise MappingError(
                    f"cannot apply rename at '{plan.path}/@{renamed}': '{plan.path}' would have two attributes "
                    f"'{name}'; "
                    "choose another name"
                )

    def _check_circles(self, plan: NodePlan) -> None:
        for child in plan.places:
            passed = [child]
            while isinstance(place := plan.place(passed[-1]), Down) and not place.up:
                if place.into in passed:
                    raise MappingError(
                        f"cannot apply downgrade at '{plan.path}': '{place.into}' would end up inside itself; "
                        "remove one of the downgrades"
                    )
                passed.append(place.into)

    # Exchanging.

    def _exchange(self, operator: Exchange) -> None:
        plan, node = self._node(operator, operator.node), self.tree.paths.get(operator.node)
        child = node.child(operator.child) if node is not None else None
        if node is None or child is None:
            names = ", ".join(each.name for each in node.children) if node is not None else ""
            _refuse(operator, f"'{operator.node}' has no child '{operator.child}'; its children: {names or 'none'}")
        if plan.exchange is not None:
            _refuse(
                operator, f"'{operator.node}' is already exchanged with '{plan.exchange}'; remove one of the exchanges"
            )
        if operator.node == self._root() and child.repeats:
            _refuse(operator, f"'{operator.child}' may repeat, but a document has one root; choose another child")
        plan.exchange = operator.child

    def _exchanged_children(self) -> dict[str, dict[str, str]]:
        """The children of each node once all exchanges are done: their paths, by name."""
        children = {
            path: {child.name: f"{path}/{child.name}" for child in node.children}
            for path, node in self.tree.paths.items()
        }
        parents = {path: parent_of(path) for path in self.tree.paths}
        for path, plan in self.nodes.items():  # in preorder, as on documents
            if plan.exchange is None:
                continue
            taker, above = f"{path}/{plan.exchange}", parents[path]
            if parents[taker] != path:
                raise MappingError(
                    f"cannot apply exchange at '{path}': another exchange already moved its child '{plan.exchange}'; "
                    "remove one of the exchanges"
                )
            del children[path][name_of(taker)]
            self._adopt(children, taker, path)
            if above:
                del children[above][name_of(path)]
                self._adopt(children, above, taker)
            else:
                self.root = taker
            parents[taker], parents[path] = above, taker
        return children

    def _adopt(self, children: Mapping[str, dict[str, str]], parent: str, child: str) -> None:
        name = name_of(child)
        if name in children[parent]:
            raise MappingError(f"after an exchange, '{parent}' would have two children '{name}'; rename one of them")
        children[parent][name] = child

    def _root(self) -> str:
        return next(iter(self.tree.paths))


def _refuse(operator: Operator, reason: str) -> NoReturn:
    raise MappingError(f"cannot apply {operator.kind} at '{operator.node}': {reason}")
