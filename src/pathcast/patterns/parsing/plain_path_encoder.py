"""Plain paths in bulk: `/a//b/*` as a few small integers, without a tree.

A step is `2 · symbol`, plus 1 after `//`; symbol 0 is `*`, symbol `k + 1` the name with id `k`. A path is its tuple
of steps, in the normal form of `normal_form_constructors.py`: `//*/x` becomes `/*//x`, a last `//*` becomes `/*`.

The trick is to split at single slashes only: with `//` written as `/` and a mark, each piece is one step, and a
dictionary maps pieces to steps. A new piece is checked once; a piece that is not a name sends the expression to
`xpath_parser.py`.

Cost: about 1 µs per path once its steps are known. Invariant: agrees with `parse` (property test).
"""

from pathcast.documents import Names
from pathcast.errors import PatternError

from ..pattern_text import test_text
from ..tree_pattern import WILDCARD, Axis, Node, Pattern
from .xpath_parser import MAX_STEPS, Namespaces, max_length, parse
from .xpath_tokens import NCNAME, compiled

Steps = tuple[int, ...]

_DESCENDANT = "\0"
_ANY = 0
_ANY_BELOW = 1
_QNAME = rf"(?:{NCNAME}:)?{NCNAME}"


class PathEncoder:
    """Encodes plain paths as steps over one table of names."""

    def __init__(self, names: Names, namespaces: Namespaces = None, *, max_steps: int = MAX_STEPS) -> None:
        self.names = names
        self.namespaces = namespaces
        self.max_steps = max_steps
        self._max_length = max_length(max_steps)
        self._pieces: dict[str, int] = {WILDCARD: _ANY, _DESCENDANT + WILDCARD: _ANY_BELOW}

    def encode(self, expression: str) -> Steps | None:
        """The steps of a plain path in normal form; None for any other expression."""
        if not isinstance(expression, str):
            return None  # the parser reports the error
        if len(expression) > self._max_length:
            return None
        absolute = expression if expression[:1] == "/" else "//" + expression
        if "[" in absolute:
            return None
        pieces = absolute.replace("//", "/\0").split("/")
        try:
            steps = tuple(map(self._pieces.__getitem__, pieces[1:]))
        except KeyError:
            if not all(map(self._learn, pieces[1:])):
                return None
            steps = tuple(map(self._pieces.__getitem__, pieces[1:]))
        if len(steps) > self.max_steps:
            return None
        return normalised(steps)

    def _learn(self, piece: str) -> bool:
        """Register the step of a piece; False if the piece is not plain."""
        if piece in self._pieces:
            return True
        below = piece[:1] == _DESCENDANT
        text = piece[1:] if below else piece
        if not compiled(_QNAME).fullmatch(text):
            return False
        try:
            pattern = parse("/" + text, self.namespaces)
        except PatternError:
            return False
        assert pattern.root is not None
        self._pieces[piece] = 2 * (self.names.add(pattern.root.test) + 1) + below
        return True

    def steps_of(self, pattern: Pattern) -> Steps | None:
        """The steps of a pattern that is a plain path; None for any other."""
        linear = pattern.linear
        if linear is None:
            return None
        return tuple(map(self.step, linear))

    def step(self, node: Node) -> int:
        """The code of one step."""
        symbol = 0 if node.test == WILDCARD else self.names.add(node.test) + 1
        return 2 * symbol + (node.axis == "//")


def normalised(steps: Steps) -> Steps:
    """Move each `//` that precedes a `*` after it."""
    if _ANY_BELOW not in steps:
        return steps
    result = list(steps)
    for index in range(len(result) - 1):
        if result[index] == _ANY_BELOW:
            result[index] = _ANY
            result[index + 1] |= 1
    if result[-1] == _ANY_BELOW:
        result[-1] = _ANY
    return tuple(result)


def pattern_of(steps: Steps, names: Names) -> Pattern:
    """The tree pattern of a plain path."""
    root: Node | None = None
    for step in reversed(steps):
        axis: Axis = "//" if step & 1 else "/"
        test = WILDCARD if step < 2 else names[(step >> 1) - 1]
        root = Node(axis, test, () if root is None else (root,))
    return Pattern(root)


def path_text(steps: Steps, names: Names) -> str:
    """A plain path as XPath."""
    text = ""
    for step in steps:
        name = WILDCARD if step < 2 else names[(step >> 1) - 1]
        text += ("//" if step & 1 else "/") + test_text(name)
    return text or "/"
