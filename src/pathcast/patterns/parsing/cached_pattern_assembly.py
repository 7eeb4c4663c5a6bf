"""Assembly: patterns put together from known steps and predicates.

Collections repeat themselves: a million expressions have a few hundred distinct steps and some thousand predicates.
The assembler splits an expression into these parts, looks up each, and builds nodes from the last step to the first:

    /news[@lang = 'en'][head]//p/q      /news   [@lang = 'en']   [head]   //p   /q

An unknown part is parsed once: a comparison (`[a/@b > 5]`) by the text around its literal, a path (`[a[b]/c]`) and the
operands of `and` from their own parts, everything else by recursive descent.

Why this is right: each part is complete, with its brackets and quotes closed, so the next part starts outside of them
and means the same after any part. An expression that cannot be split into complete and valid parts, can never match, or
exceeds a limit is left to `recursive_descent.py`, which also reports the errors.

Invariant: returns the pattern that `Descent` returns, or None (property test).
Cost: some 10 µs per expression with two predicates, mostly for hashing and building nodes; 5 µs more for each new
predicate. Memory: bounded, see `bounded_cache.py`.
"""

import re
from typing import cast

from msgspec import Struct

from pathcast.errors import LimitError, PatternError

from .. import normal_form_constructors as normal
from ..pattern_text import condition_text, has_one_text, literal_text, test_text
from ..tree_pattern import WILDCARD, AllOf, Axis, Compare, Condition, Node, Operator, Pattern
from ..xpath_value_comparison import number_of, number_text
from .bounded_cache import Memo
from .recursive_descent import MAX_NESTING, MAX_TREE_STEPS, Descent, Namespaces
from .xpath_tokens import LITERAL, NAME, NUMBER, SPACE, SURROGATE, compiled

_TEST = rf"(?:text\(\)|@?{NAME}|\*)"
_STEP = rf"//?{_TEST}"
_NO_BRACKET = r"""[^\[\]'"]++|'[^']*+'|"[^"]*+\""""
_PREDICATE = r"\[(?:" + _NO_BRACKET + r"|\[(?:" + _NO_BRACKET + r"|\[(?:" + _NO_BRACKET + r")*+\])*+\])*+\]"
# Steps, predicates, and the rest, from the first position where neither matches: no character is scanned twice.
_PART = rf"{_STEP}|{_PREDICATE}|(?s:.+)"
_COMPARISON = (
    rf"(\[{SPACE}(?:(\.//)?({_TEST}(?://?{_TEST})*)|\.){SPACE}(!?=|[<>]=?){SPACE})({LITERAL}|-?{NUMBER}){SPACE}\]"
)
_AND = " and "
_MAY_BE_OR = re.compile(r"(?<![^\W\d])or\b")  # not after a letter, where it is part of a name

# How deep an assembled predicate may be nested: each level may be tried in vain.
_DEEPEST = 4
_STEP_BYTES = 4 << 20
_PREDICATE_BYTES = 48 << 20
_DECLARED = 2


class _Step(Struct, frozen=True, gc=False):
    """A step without conditions: its axis and test, and its node if nothing follows."""

    axis: Axis
    test: str
    last: Node
    is_value: bool
    is_plain: bool  # neither a value nor `//*`: a node with any conditions


class _Predicate(Struct, frozen=True, gc=False):
    """The conditions that a predicate adds to its node, in order, with their texts, and its number of steps."""

    conditions: tuple[Condition, ...]
    texts: tuple[tuple[str, Condition], ...]
    steps: int


class _Frame(Struct, frozen=True, gc=False):
    """A comparison without its literal, `[a/@b > `: its steps from last to first, and the text around the literal."""

    operator: Operator
    steps: tuple[_Step, ...]
    begin: str
    end: str


class Assembler:
    """Assembles patterns; its known parts depend on the namespaces."""

    def __init__(self, namespaces: Namespaces) -> None:
        self.namespaces = namespaces
        self._steps: Memo[_Step] = Memo(_STEP_BYTES)
        self._frames: Memo[_Frame] = Memo(_STEP_BYTES)
        self._predicates: Memo[_Predicate] = Memo(_PREDICATE_BYTES)

    def pattern(self, expression: str, limit: int) -> Pattern | None:
        """The pattern of an expression with at most `limit` steps; None if recursive descent must read it."""
        if not expression.isascii() and SURROGATE.search(expression):
            return None
        if expression.count("[") + expression.count("(") > MAX_NESTING:
            return None
        root, _ = self._path(expression if expression[:1] == "/" else "//" + expression, limit, 0)
        return None if root is None else Pattern(root)

    def _path(self, text: str, limit: int, depth: int) -> tuple[Node | None, int]:
        """The first node of an absolute path and its number of steps."""
        count = 0
        below: Node | None = None
        held: list[_Predicate] = []
        steps, predicates = self._steps.recent, self._predicates.recent
        for part in reversed(compiled(_PART).findall(text)):
            if part[0] == "[":
                predicate = predicates.get(part) or self._predicate(part, depth)
                if predicate is None:
                    return None, 0
                count += predicate.steps
                held.append(predicate)
                continue
            step = steps.get(part) or self._step(part)
            count += 1
            if step is None or count > limit:
                return None, 0
            if held:
                conditions = _joined(held, below)
                held = []
            elif below is None:
                below = step.last
                continue
            else:
                conditions = (below,)
            if step.is_plain:
                below = Node(step.axis, step.test, conditions)
            elif step.is_value and conditions:
                return None, 0
            else:
                below = _node(step, conditions)
        return below, count

    def _step(self, part: str) -> _Step | None:
        known = self._steps.get(part)
        if known is None and compiled(_STEP).fullmatch(part):
            axis: Axis = "//" if part[1] == "/" else "/"
            try:
                root = Descent(part, self.namespaces, 1, 0).pattern().root
            except PatternError:
                return None
            assert root is not None
            is_value = not root.is_element
            is_plain = not is_value and part != "//*"
            known = _Step(axis, root.test, root, is_value, is_plain)
            self._steps.keep(part, known)
        return known

    # Predicates.

    def _predicate(self, part: str, depth: int) -> _Predicate | None:
        known = self._predicates.get(part)
        if known is None:
            known = self._comparison(part)
            if known is None and part[-1] == "]":
                known = self._conjunction(part, depth) or self._nested(part, depth)
            if known is None:
                known = self._descended(part)
            if known is not None:
                self._predicates.keep(part, known)
        return known

    def _conjunction(self, part: str, depth: int) -> _Predicate | None:
        """`[a and b]` as `[a][b]`."""
        if _AND not in part or _MAY_BE_OR.search(part):
            return None
        by_text: dict[str, Condition] = {}
        count = 0
        for piece in part[1:-1].split(_AND):
            if piece.endswith("/"):
                return None  # the text after it is the name of a step
            predicate = self._predicate(f"[{piece}]", depth)
            if predicate is None:
                return None
            by_text.update(predicate.texts)
            count += predicate.steps
        texts = tuple([(text, by_text[text]) for text in sorted(by_text)])
        return _Predicate(tuple([condition for _, condition in texts]), texts, count)

    def _nested(self, part: str, depth: int) -> _Predicate | None:
        """A path, possibly with predicates of its own."""
        if depth == _DEEPEST or part[1] == "/":
            return None
        path = part[2:-1] if part.startswith("[.//") else "/" + part[1:-1]
        node, count = self._path(path, MAX_TREE_STEPS, depth + 1)
        return None if node is None else _described((node,), count)

    def _comparison(self, part: str) -> _Predicate | None:
        """A path without predicates, or `.`, compared with a literal."""
        found = compiled(_COMPARISON).fullmatch(part)
        if found is None:
            return None
        text, deep, path, operator, literal = found.groups()
        frame = self._frames.recent.get(text) or self._frame(
            text, ("//" if deep else "/") + path if path else "", operator
        )
        if frame is None:
            return None
        if literal[0] in "\"'":
            test = normal.compare(frame.operator, literal[1:-1], literal[1:-1])
        else:
            test = normal.compare(frame.operator, number_of(literal), literal)
        if not isinstance(test, Compare) or (test.number is not None and number_text(test.number) is None):
            return None
        condition = _compared(frame.steps, test)
        return _Predicate((condition,), ((frame.begin + literal_text(test) + frame.end, condition),), len(frame.steps))

    def _frame(self, text: str, path: str, operator: str) -> _Frame | None:
        known = self._frames.get(text)
        if known is None:
            steps: list[_Step] = []
            for part in reversed(compiled(_STEP).findall(path)):
                step = self._steps.recent.get(part) or self._step(part)
                if step is None or (step.is_value and steps):
                    return None
                steps.append(step)
            probe = Compare.with_string(cast(Operator, operator), "")
            begin, _, end = condition_text(_compared(tuple(steps), probe)).rpartition("''")
            known = _Frame(probe.operator, tuple(steps), begin, end)
            self._frames.keep(text, known)
        return known

    def _descended(self, part: str) -> _Predicate | None:
        try:
            descent = Descent(part, self.namespaces, MAX_TREE_STEPS, MAX_NESTING)
            condition = descent.predicate(inside_value=False)
        except (PatternError, LimitError):
            return None
        if descent.token.kind != "end" or normal.is_never(condition):
            return None
        if not has_one_text(condition):
            return None
        return _described(condition.conditions if isinstance(condition, AllOf) else (condition,), descent.steps)


def _described(conditions: tuple[Condition, ...], steps: int) -> _Predicate:
    return _Predicate(conditions, tuple([(condition_text(condition), condition) for condition in conditions]), steps)


def _compared(steps: tuple[_Step, ...], test: Condition) -> Condition:
    """The path with these steps, from the last to the first, whose end passes the test."""
    for step in steps:
        test = _node(step, (test,))
    return test


def _node(step: _Step, conditions: tuple[Condition, ...]) -> Node:
    """The step with these conditions, which must be in normal form."""
    if not conditions:
        return step.last
    if step.axis == "//" and step.test == WILDCARD:
        node = normal.node(step.axis, step.test, conditions)
        assert isinstance(node, Node)
        return node
    return Node(step.axis, step.test, conditions)


def _joined(held: list[_Predicate], below: Node | None) -> tuple[Condition, ...]:
    """The conditions of predicates and the node that continues the path, in normal form: sorted by text, each once."""
    if below is None and len(held) == 1:
        return held[0].conditions
    by_text: dict[str, Condition] = {}
    for predicate in held:
        by_text.update(predicate.texts)
    if below is not None:
        # The beginning of the text suffices for sorting, unless another text begins the same.
        text = ("" if below.axis == "/" else ".//") + test_text(below.test)
        for other in by_text:
            if other.startswith(text):
                text = condition_text(below)
                break
        by_text[text] = below
    return tuple([by_text[text] for text in sorted(by_text)])


# One for each way to read names: without prefixes, with prefixes ignored, and with the latest declared prefixes.
_plain = Assembler(None)
_ignoring = Assembler("ignore")
_declared: list[Assembler] = []


def assembler(namespaces: Namespaces) -> Assembler:
    """The assembler with the parts read under these namespaces."""
    global _declared  # noqa: PLW0603 - replaced as a whole, so that other threads see one list or the other
    if not namespaces:
        return _plain
    if namespaces == "ignore":
        return _ignoring
    for known in _declared:
        if known.namespaces == namespaces:
            return known
    fresh = Assembler(dict(namespaces))
    _declared = [fresh, *_declared[: _DECLARED - 1]]
    return fresh
