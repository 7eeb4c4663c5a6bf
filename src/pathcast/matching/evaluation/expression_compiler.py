"""Expressions compiled to Python functions that are evaluated on the nodes of a document.

Each part becomes a function of (nodes, context node, position, size). Absolute paths do not depend on the context: an
evaluation finds their nodes once.

Invariant: answers are libxml2's (`xpath_strings.py`, `node_axes.py` name its peculiarities), and an evaluation ends:
every node visited and every 64 characters read are counted, and `OutOfWorkError` ends an evaluation without work left.
The work that an expression takes on a document depends on nothing else.
Cost: some 0.2 µs per node visited. Absolute paths find their nodes by label paths, up to the first predicates
(`label_path_index.py`).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from pathcast.patterns.xpath import (
    ANYWHERE,
    FUNCTIONS,
    Call,
    Chain,
    Expression,
    Filter,
    Kind,
    Negative,
    Number,
    Path,
    Step,
    String,
    expression_text,
    is_positional,
    kind_of,
    regular_expression,
)

from .comparison_compiler import compared_as, compile_comparison, number_in
from .document_nodes import DocumentNodes
from .function_compiler import OF_NODES, OF_VALUES, language, with_ids
from .label_path_index import compile_located, is_located
from .needed_markup import needed_markup
from .step_compiler import Predicates, Take, compile_existence, compile_step
from .xpath_strings import quotient, remainder, text_of

Evaluate = Callable[[DocumentNodes, int, int, int], Any]

_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "div": quotient,
    "mod": remainder,
}
_OF_CONTEXT = frozenset({"string-length", "normalize-space", "lower-case", "upper-case", "date"})
_LONG = frozenset({"concat", "normalize-space", "translate", "lower-case", "upper-case"})


class CompiledExpression:
    """An expression, ready to be evaluated on any document."""

    def __init__(self, expression: Expression) -> None:
        self._value = _compiled(expression)
        self._truth = _as(expression, "boolean")
        self.needs_markup, self.needs_namespaces = needed_markup(expression)

    def holds(self, nodes: DocumentNodes, work: int) -> bool:
        """XPath's boolean() of the expression at the document; `OutOfWorkError` if it takes more than `work`."""
        nodes.work = work
        nodes.known = {}
        return bool(self._truth(nodes, 0, 1, 1))

    def selected(self, nodes: DocumentNodes, work: int) -> list[int]:
        """The nodes that a path selects, in document order."""
        nodes.work = work
        nodes.known = {}
        found: list[int] = self._value(nodes, 0, 1, 1)
        return found


def _as(expression: Expression, kind: Kind) -> Evaluate:
    """The expression, converted to another kind of value."""
    given = kind_of(expression)
    if kind == "boolean" and isinstance(expression, Path) and expression.steps:
        last = expression.steps[-1]
        if not any(map(is_positional, last.predicates)):
            return _existence(expression)
    value = _compiled(expression)
    if given == kind:
        return value
    if kind == "boolean":
        return _to_boolean(value, given)
    if kind == "number":
        return _to_number(value, given)
    assert kind == "string", "only sets of nodes are sets of nodes"
    return _to_string(value, given)


def _to_boolean(value: Evaluate, given: Kind) -> Evaluate:
    if given == "number":

        def not_zero(nodes: DocumentNodes, node: int, place: int, size: int) -> bool:
            number: float = value(nodes, node, place, size)
            return number != 0 and number == number  # noqa: PLR0124 - NaN

        return not_zero
    return lambda nodes, node, place, size: bool(value(nodes, node, place, size))


def _to_number(value: Evaluate, given: Kind) -> Evaluate:
    if given == "boolean":
        return lambda nodes, node, place, size: 1.0 if value(nodes, node, place, size) else 0.0
    text = value if given == "string" else _to_string(value, given)
    return lambda nodes, node, place, size: number_in(nodes, text(nodes, node, place, size))


def _to_string(value: Evaluate, given: Kind) -> Evaluate:
    if given == "number":
        return lambda nodes, node, place, size: text_of(value(nodes, node, place, size))
    if given == "boolean":
        return lambda nodes, node, place, size: "true" if value(nodes, node, place, size) else "false"

    def first(nodes: DocumentNodes, node: int, place: int, size: int) -> str:
        found = value(nodes, node, place, size)
        return nodes.value(found[0]) if found else ""

    return first


def _compiled(expression: Expression) -> Evaluate:
    match expression:
        case Number(value=number):
            return lambda nodes, node, place, size: number
        case String(value=text):
            return lambda nodes, node, place, size: text
        case Negative(operand=operand):
            value = _as(operand, "number")
            return lambda nodes, node, place, size: -value(nodes, node, place, size)
        case Call():
            return _call(expression)
        case Chain():
            return _chain(expression)
        case Filter():
            found, keep = _compiled(expression.nodes), _predicates(expression.predicates, of_step=False).keep
            return lambda nodes, node, place, size: keep(nodes, found(nodes, node, place, size))
        case Path():
            return _path(expression)


# Operators.


def _chain(chain: Chain) -> Evaluate:
    symbol = chain.rest[0][0]
    if symbol in ("and", "or"):
        return _junction([chain.first, *[operand for _, operand in chain.rest]], until=symbol == "or")
    if symbol == "|":
        return _union([chain.first, *[operand for _, operand in chain.rest]])
    if symbol in _ARITHMETIC:
        return _arithmetic(chain)
    return _comparisons(chain)


def _junction(operands: list[Expression], *, until: bool) -> Evaluate:
    truths = [_as(operand, "boolean") for operand in operands]

    def junction(nodes: DocumentNodes, node: int, place: int, size: int) -> bool:
        for truth in truths:
            if truth(nodes, node, place, size) == until:
                return until
        return not until

    return junction


def _union(operands: list[Expression]) -> Evaluate:
    members = [_compiled(operand) for operand in operands]

    def union(nodes: DocumentNodes, node: int, place: int, size: int) -> list[int]:
        found: set[int] = set()
        for member in members:
            found.update(member(nodes, node, place, size))
        return sorted(found)

    return union


def _arithmetic(chain: Chain) -> Evaluate:
    first = _as(chain.first, "number")
    rest = [(_ARITHMETIC[symbol], _as(operand, "number")) for symbol, operand in chain.rest]

    def arithmetic(nodes: DocumentNodes, node: int, place: int, size: int) -> float:
        value: float = first(nodes, node, place, size)
        for operation, operand in rest:
            value = operation(value, operand(nodes, node, place, size))
        return value

    return arithmetic


def _comparisons(chain: Chain) -> Evaluate:
    """Comparisons from left to right: the result of the first is a boolean, which the second compares."""
    left, kind = _compiled(chain.first), kind_of(chain.first)
    for symbol, operand in chain.rest:
        kinds = compared_as(symbol, (kind, kind_of(operand)))
        if "boolean" in (kind, kind_of(operand)) and "nodes" in (kind, kind_of(operand)):
            left, right = _by_truth(left, kind), _by_truth(_compiled(operand), kind_of(operand))
            left, right = _converted(left, "boolean", kinds[0]), _converted(right, "boolean", kinds[1])
        else:
            left = _converted(left, kind, kinds[0])
            right = _as(operand, kinds[1])
        left = compile_comparison(symbol, kinds, left, right)
        kind = "boolean"
    return left


def _by_truth(value: Evaluate, given: Kind) -> Evaluate:
    return value if given == "boolean" else _to_boolean(value, given)


def _converted(value: Evaluate, given: Kind, kind: Kind) -> Evaluate:
    if given == kind:
        return value
    return {"boolean": _to_boolean, "number": _to_number, "string": _to_string}[kind](value, given)


# Functions.


def _call(call: Call) -> Evaluate:
    function, arguments = call.function, call.arguments
    if function == "position":
        return lambda nodes, node, place, size: float(place)
    if function == "last":
        return lambda nodes, node, place, size: float(size)
    if function in ("string", "number", "boolean"):
        return _context_as(function) if not arguments else _as(arguments[0], cast(Kind, function))
    if function == "id":
        return _id(arguments[0])
    if function == "lang":
        wanted = _as(arguments[0], "string")
        return lambda nodes, node, place, size: language(nodes, node, wanted(nodes, node, place, size))
    if function == "matches":
        return _matches(call)
    if function in OF_NODES:
        of_nodes = OF_NODES[function]
        found = _compiled(arguments[0]) if arguments else _context
        return lambda nodes, node, place, size: of_nodes(nodes, found(nodes, node, place, size))
    return _of_values(call)


def _matches(call: Call) -> Evaluate:
    text, pattern = _as(call.arguments[0], "string"), call.arguments[1]
    assert isinstance(pattern, String)
    matches = regular_expression(pattern.value)

    def search(nodes: DocumentNodes, node: int, place: int, size: int) -> bool:
        searched = text(nodes, node, place, size)
        nodes.spend(len(searched) >> 4)
        return bool(matches(searched))

    return search


def _of_values(call: Call) -> Evaluate:
    function, signature = call.function, FUNCTIONS[call.function]
    of_values = OF_VALUES[function]
    kinds = [signature.arguments[min(at, len(signature.arguments) - 1)] for at in range(len(call.arguments))]
    values = [_as(argument, kind) for argument, kind in zip(call.arguments, kinds, strict=True) if kind != "any"]
    if not values and function in _OF_CONTEXT:
        values = [_context_as("string")]
    is_long = function in _LONG
    if len(values) == 1:
        alone = values[0]
        if not is_long:
            return lambda nodes, node, place, size: of_values(alone(nodes, node, place, size))

    def applied(nodes: DocumentNodes, node: int, place: int, size: int) -> Any:
        given = []
        for value in values:
            given.append(value(nodes, node, place, size))  # noqa: PERF401 - a comprehension is one more frame
        if is_long:
            nodes.spend(sum(map(len, given)) >> 6)
        return of_values(*given)

    return applied


def _context(nodes: DocumentNodes, node: int, place: int, size: int) -> list[int]:
    return [node]


def _context_as(kind: str) -> Evaluate:
    return _to_string(_context, "nodes") if kind == "string" else _to_number(_context, "nodes")


def _id(argument: Expression) -> Evaluate:
    if kind_of(argument) == "nodes":
        found = _compiled(argument)
        return lambda nodes, node, place, size: with_ids(
            nodes, [nodes.value(each) for each in found(nodes, node, place, size)]
        )
    text = _as(argument, "string")
    return lambda nodes, node, place, size: with_ids(nodes, [text(nodes, node, place, size)])


# Paths.


def _predicates(predicates: tuple[Expression, ...], *, of_step: bool = True) -> Predicates:
    return Predicates(predicates, lambda each: _as(each, "boolean"), lambda each: _as(each, "number"), of_step=of_step)


def _path(path: Path) -> Evaluate:
    if path.absolute:
        return _absolute(path)
    takes = [_step(step) for step in _fused(path.steps)]
    if path.start is not None:
        start = _compiled(path.start)

        def continued(nodes: DocumentNodes, node: int, place: int, size: int) -> list[int]:
            return _followed(takes, nodes, start(nodes, node, place, size))

        return continued
    if len(takes) == 1:
        take = takes[0]
        return lambda nodes, node, place, size: take(nodes, (node,))
    return lambda nodes, node, place, size: _followed(takes, nodes, [node])


def _existence(path: Path) -> Evaluate:
    """Whether a path selects a node; its last step stops at the first."""
    steps = _fused(path.steps)
    if path.absolute and all(map(is_located, steps)) and not any(step.predicates for step in steps[:-1]):
        return _some_located(steps)
    exists = compile_existence(steps[-1], _predicates(steps[-1].predicates))
    if len(steps) == 1 and path.start is None:
        if path.absolute:
            return lambda nodes, node, place, size: exists(nodes, (0,))
        return lambda nodes, node, place, size: exists(nodes, (node,))
    before = _path(replace(path, steps=tuple(steps[:-1])))
    return lambda nodes, node, place, size: exists(nodes, before(nodes, node, place, size))


def _absolute(path: Path) -> Evaluate:
    """The nodes of an absolute path, found once per evaluation: by label paths up to the first predicates."""
    key, steps = expression_text(path), _fused(path.steps)
    located, count = None, 0
    while count < len(steps) and is_located(steps[count]) and not (count and steps[count - 1].predicates):
        count += 1
    if count and any(map(is_positional, steps[count - 1].predicates)):
        count -= 1  # its positions count below each parent
    if count:
        located = compile_located(steps[:count])
    keep = _predicates(steps[count - 1].predicates).keep if count and steps[count - 1].predicates else None
    takes = [_step(step) for step in steps[count:]]

    def absolute(nodes: DocumentNodes, node: int, place: int, size: int) -> list[int]:
        found = nodes.known.get(key)
        if found is None:
            found = [0] if located is None else located(nodes)
            if keep is not None:
                found = keep(nodes, found)
            found = nodes.known[key] = _followed(takes, nodes, found)
        return found

    return absolute


def _some_located(steps: list[Step]) -> Evaluate:
    """Whether one of the elements that label paths find passes the predicates of the last step."""
    located, last = compile_located(steps), _predicates(steps[-1].predicates)
    if not steps[-1].predicates:
        return lambda nodes, node, place, size: bool(located(nodes))
    holds = last.holds

    def some(nodes: DocumentNodes, node: int, place: int, size: int) -> bool:
        for each in located(nodes):  # noqa: SIM110 - any() would take a frame per node
            if holds(nodes, each):
                return True
        return False

    return some


def _followed(takes: list[Take], nodes: DocumentNodes, found: list[int]) -> list[int]:
    for take in takes:
        if not found:
            break
        found = take(nodes, found)
    return found


def _step(step: Step) -> Take:
    return compile_step(step, _predicates(step.predicates))


def _fused(steps: tuple[Step, ...]) -> list[Step]:
    """`//a` as one step to descendants, unless a predicate counts positions among siblings."""
    fused: list[Step] = []
    for step in steps:
        below = bool(fused) and fused[-1] == ANYWHERE and step.axis in ("child", "descendant")
        if below and not any(map(is_positional, step.predicates)):
            fused[-1] = Step("descendant", step.test, step.predicates)
        else:
            fused.append(step)
    return fused
