"""Walks: random paths through a schema's children graph, as the query generators in the literature draw them.

A walk starts at the root and draws a child at each level, by Zipf's law over the declared children (p ∝ 1 / rank^skew),
until the maximum depth or an element without children. Outside a `//` each level starts one with probability
`descendant`, which leaves a uniformly drawn number of levels unprinted. A printed step is `*` with probability
`wildcard`, while the walk continues from the concrete element. `//*` is printed as `/*//`, which means the same; a `//`
after the last step is dropped. The last step keeps its name, as in the published queries, where no path ends in
`*`; with `last_wildcard` it is `*` as often as any other.

Conditions on steps: comparisons of attributes and text with values from the domains of the documents, and nested paths,
which lead from another child of the step, with a plain name first.
"""

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import NamedTuple

from pathcast.documents.schema import Element, Schema
from pathcast.errors import LimitError
from pathcast.workloads.generation_options import SubscriptionOptions
from pathcast.workloads.value_pools import Domain, Values


class Comparison(NamedTuple):
    """A value predicate. The operator is `=`, `<=`, `>=`, or `contains` for readable text."""

    target: str
    operator: str
    value: str
    numeric: bool

    def __str__(self) -> str:
        value = self.value if self.numeric else _quoted(self.value)
        if self.operator == "contains":
            return f"contains({self.target}, {value})"
        return f"{self.target}{self.operator}{value}"


class Path(NamedTuple):
    """A subscription before printing: steps such as `/a`, `//b`, `/*`, and the conditions on some of them.

    A condition is a comparison or a relative path, given by its steps (the first without slash).
    """

    steps: list[str]
    conditions: dict[int, list["Comparison | list[str]"]]

    def __str__(self) -> str:
        if not self.conditions:
            return "".join(self.steps)
        parts = list(self.steps)
        for at, conditions in self.conditions.items():
            for condition in conditions:
                inside = str(condition) if isinstance(condition, Comparison) else "".join(condition)
                parts[at] += f"[{inside}]"
        return "".join(parts)


class Node:
    """An element in the graph of the walk."""

    __slots__ = ("bounds", "children", "name", "targets")

    def __init__(self, name: str) -> None:
        self.name = name
        self.children: list[Node] = []
        self.bounds: list[float] = []  # running sums of the children's probabilities; empty when they are equal
        self.targets: list[tuple[str, Domain]] = []  # values that a comparison may test


class Walker:
    """Draws paths. All randomness comes from the seed."""

    attempts = 100_000  # walks in a row that may be too short

    def __init__(self, schema: Schema, values: Values, options: SubscriptionOptions, *, seed: int) -> None:
        self.max_depth = options.max_depth
        self.min_depth = options.max_depth if options.min_depth is None else options.min_depth
        self.required_depth = options.min_depth or 1
        self.wildcard = options.wildcard
        self.last_wildcard = options.last_wildcard
        self.descendant = options.descendant
        self.predicates = options.predicates
        self.predicate_probability = options.predicate_probability
        self.operators = tuple(options.operators)
        self.named_only = options.predicate_steps == "named"
        self.nested = options.nested
        self.nested_probability = options.nested_probability
        self.random = Random(f"pathcast/subscriptions/{seed}").random
        self.root = _graph(schema, options.skew)[schema.root]
        if self.predicates or self.predicate_probability:
            for node in nodes_below(self.root):
                node.targets = _targets(schema[node.name], values, self.operators, options.predicate_targets)

    @property
    def conditional(self) -> bool:
        """Whether paths get conditions."""
        return bool(self.predicates or self.predicate_probability or self.nested or self.nested_probability)

    def path(self) -> Path:
        """The next path."""
        for _ in range(self.attempts):
            depth = self.min_depth + int(self.random() * (self.max_depth - self.min_depth + 1))
            steps, levels, trail = self._walk(self.root, 1, depth, False)
            if steps and len(trail) >= self.required_depth:
                conditions: dict[int, list[Comparison | list[str]]] = {}
                if self.nested or self.nested_probability:
                    self._add_nested(conditions, levels, trail)
                if self.predicates or self.predicate_probability:
                    self._add_comparisons(conditions, [trail[level - 1] for level in levels], steps)
                return Path(steps, conditions)
        raise shallow_schema(self)

    def _walk(self, node: Node, level: int, depth: int, relative: bool) -> tuple[list[str], list[int], list[Node]]:
        """Steps, the level of each, and the elements of all levels. A relative walk starts with a plain name."""
        random, wildcard, descendant = self.random, self.wildcard, self.descendant
        steps: list[str] = []
        levels: list[int] = []
        trail = [node]
        below = starred_below = False  # inside a `//`; whether the last `*` stood in one
        skip = 0
        if relative:
            steps.append(node.name)
            levels.append(level)
        while True:
            if len(trail) > 1 or not relative:
                if not below and random() < descendant:
                    below = True
                    skip = int(random() * (depth - level + 1))
                if skip:
                    skip -= 1
                elif random() < wildcard:
                    steps.append("/*")
                    levels.append(level)
                    starred_below = below
                else:
                    steps.append("//" + node.name if below else "/" + node.name)
                    levels.append(level)
                    below = False
            children = node.children
            if level >= depth or not children:
                break
            if node.bounds:
                node = children[bisect(node.bounds, random(), 0, len(children) - 1)]
            else:
                node = children[int(random() * len(children))]
            trail.append(node)
            level += 1
        if steps and steps[-1] == "/*" and not self.last_wildcard:
            name = trail[levels[-1] - level - 1].name
            steps[-1] = "//" + name if starred_below else "/" + name
        return steps, levels, trail

    def _add_nested(
        self, conditions: dict[int, list[Comparison | list[str]]], levels: list[int], trail: list[Node]
    ) -> None:
        """Nested paths from children that are not on the trail, each child of a step at most once."""
        random = self.random
        free: dict[int, list[Node]] = {}
        for at, level in enumerate(levels):
            on_trail = trail[level] if level < len(trail) else None
            others = [child for child in trail[level - 1].children if child is not on_trail]
            if others and level < self.max_depth:
                free[at] = others
        if self.nested_probability:
            chosen = [at for at in free if random() < self.nested_probability]
        else:
            chosen = []
            room = {at: len(others) for at, others in free.items()}
            while len(chosen) < self.nested and room:
                at = list(room)[int(random() * len(room))]
                chosen.append(at)
                room[at] -= 1
                if not room[at]:
                    del room[at]
        for at in sorted(chosen):
            node = self._draw(trail[levels[at] - 1], free[at])
            free[at].remove(node)
            steps, _, _ = self._walk(node, levels[at] + 1, self.max_depth, True)
            conditions.setdefault(at, []).append(steps)

    def _draw(self, parent: Node, others: list[Node]) -> Node:
        """One of `others`, children of `parent`, by the parent's distribution."""
        if not parent.bounds:
            return others[int(self.random() * len(others))]
        weights = dict(zip(parent.children, _weights(parent.bounds), strict=True))
        bounds = list(accumulate(weights[child] for child in others))
        return others[bisect(bounds, self.random() * bounds[-1], 0, len(others) - 1)]

    def _add_comparisons(
        self, conditions: dict[int, list[Comparison | list[str]]], nodes: list[Node], steps: list[str]
    ) -> None:
        """Comparisons, each attribute or text of a step at most once."""
        random = self.random
        asked = {at: node for at, node in enumerate(nodes) if not self.named_only or steps[at] != "/*"}
        chosen: list[tuple[int, tuple[str, Domain]]] = []
        if self.predicate_probability:
            for at, node in asked.items():
                chosen += [(at, target) for target in node.targets if random() < self.predicate_probability]
        else:
            free = {at: list(node.targets) for at, node in asked.items() if node.targets}
            while len(chosen) < self.predicates and free:
                at = list(free)[int(random() * len(free))]
                targets = free[at]
                chosen.append((at, targets.pop(int(random() * len(targets)))))
                if not targets:
                    del free[at]
        for at, (target, domain) in sorted(chosen, key=lambda pair: pair[0]):
            value = domain.values[int(random() * len(domain.values))]
            if target == ".":
                comparison = Comparison(target, "contains", value, False)
            else:
                operator = self.operators[int(random() * len(self.operators))] if domain.numeric else "="
                comparison = Comparison(target, operator, value, domain.numeric)
            conditions.setdefault(at, []).append(comparison)


def shallow_schema(walker: Walker) -> LimitError:
    """The error if all walks end too early."""
    return LimitError(
        f"{walker.attempts:,} random walks in a row did not reach level {walker.required_depth} of the schema; "
        "lower min_depth"
    )


def _graph(schema: Schema, skew: float) -> dict[str, Node]:
    """The walkable part of a schema: elements that a finite document can contain."""
    nodes = {name: Node(name) for name in schema.elements if schema.height(name) is not None}
    if schema.root not in nodes:
        nodes[schema.root] = Node(schema.root)
    for name, node in nodes.items():
        node.children = [nodes[child] for child in schema.children[name] if child in nodes]
        if skew and node.children:
            weights = [1 / rank**skew for rank in range(1, len(node.children) + 1)]
            node.bounds = list(accumulate(weight / sum(weights) for weight in weights))
    return nodes


def nodes_below(root: Node) -> list[Node]:
    """The element and all its possible descendants."""
    seen = {root: None}
    stack = [root]
    while stack:
        for child in stack.pop().children:
            if child not in seen:
                seen[child] = None
                stack.append(child)
    return list(seen)


def _weights(bounds: list[float]) -> list[float]:
    return [bound - before for before, bound in zip([0.0, *bounds], bounds, strict=False)]


def _targets(
    element: Element, values: Values, operators: Sequence[str], kinds: Sequence[str]
) -> list[tuple[str, Domain]]:
    found: list[tuple[str, Domain]] = []
    if "attribute" in kinds:
        for attribute in element.attributes:
            named = attribute.type in ("ENTITY", "ENTITIES") or attribute.name.partition(":")[0] == "xmlns"
            if not named and attribute.use != "fixed":
                found.append(("@" + attribute.name, values.of_attribute(element.name, attribute)))
    if "text" in kinds and element.has_text:
        terms = values.of_search(element.name)
        found.append(("text()", values.of_text(element.name)) if terms is None else (".", terms))
    return [
        (target, domain)
        for target, domain in found
        if (target == "." or domain.numeric or "=" in operators)
        and not any("'" in value and '"' in value for value in domain.values)
    ]


def _quoted(value: str) -> str:
    return f'"{value}"' if "'" in value else f"'{value}'"
