"""Any XPath 1.0 expression, drawn from the grammar of the recommendation, with documents that it may match.

Independent of Pathcast's parser: an expression is text from the beginning, made production by production. Kinds of
values are respected, because XPath rejects other expressions. Documents are small and have few names, so that paths
reach something, and everything that a path can reach: comments, processing instructions, namespaces, mixed content.
"""

from random import Random

NAMESPACES = {"f": "urn:f", "g": "urn:g"}

_NAMES = ("a", "b", "c", "d", "f:a", "f:b")
_ATTRIBUTES = ("x", "y", "f:x", "xml:lang")
_WORDS = ("", "1", "2", "03", "x", "ab", "a b", " 7 ", "-1.5", "NaN", "1e2", "en", "EN-us", "xyx", "été", "0", "12.50")
_NUMBERS = ("0", "1", "2", "3", "1.5", ".5", "10", "0.0000012", "123456789012", "2.", "1000000000.25")
_FORWARD = ("child", "child", "child", "descendant", "descendant-or-self", "self", "following-sibling", "following")
_REVERSE = ("parent", "ancestor", "ancestor-or-self", "preceding-sibling", "preceding")
_OPERATORS = ("=", "=", "!=", "<", "<=", ">", ">=")


class Expressions:
    """Draws expressions; `depth` bounds how deep they are nested."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def subscription(self) -> str:
        """A whole expression: mostly a path, as subscriptions are."""
        random = self.random
        kind = random.random()
        if kind < 0.6:
            return self.path(3)
        if kind < 0.7:
            return " | ".join(self.path(2) for _ in range(random.randint(2, 3)))
        return self.boolean(3)

    def pick(self, *ways: str) -> str:
        return self.random.choice(ways)

    # Productions by the kind of their value.

    def any(self, depth: int) -> str:
        return self.random.choice((self.boolean, self.number, self.string, self.nodes))(depth)

    def boolean(self, depth: int) -> str:
        if depth <= 0:
            return self.pick("true()", "false()", self.path(0))
        below = depth - 1
        match self.random.randrange(12):
            case 0:
                return f"{self.boolean(below)} {self.pick('and', 'or')} {self.boolean(below)}"
            case 1:
                return f"not({self.any(below)})"
            case 2:
                return f"{self.pick('starts-with', 'contains')}({self.any(below)}, {self.any(below)})"
            case 3:
                return f"boolean({self.any(below)})"
            case 4:
                return f"lang({self.string(below)})"
            case 5:
                return f"({self.boolean(below)})"
            case 6 | 7:
                return self.nodes(below)
            case 8:
                return f"count({self.nodes(below)}) {self.random.choice(_OPERATORS)} {self.number(0)}"
            case _:
                return f"{self.operand(below)} {self.random.choice(_OPERATORS)} {self.operand(below)}"

    def operand(self, depth: int) -> str:
        value = self.random.choice((self.nodes, self.nodes, self.number, self.string, self.boolean))(depth)
        return f"({value})" if self.random.random() < 0.5 or " or " in value or " and " in value else value

    def number(self, depth: int) -> str:
        if depth <= 0:
            return self.pick(*_NUMBERS, "position()", "last()")
        below = depth - 1
        match self.random.randrange(11):
            case 0:
                return f"count({self.nodes(below)})"
            case 1:
                return f"sum({self.nodes(below)})"
            case 2:
                return f"{self.pick('floor', 'ceiling', 'round')}({self.any(below)})"
            case 3:
                return f"string-length({self.any(below)})"
            case 4:
                return f"number({self.any(below)})"
            case 5:
                return f"-{self.operand(below)}"
            case 6 | 7:
                operator = self.pick("+", "-", "*", "div", "mod")
                return f"{self.operand(below)} {operator} {self.operand(below)}"
            case 8:
                return self.pick("string-length()", "number()", "position()", "last()")
            case _:
                return self.number(0)

    def string(self, depth: int) -> str:
        if depth <= 0:
            return repr(self.random.choice(_WORDS))
        below = depth - 1
        match self.random.randrange(11):
            case 0:
                return f"concat({self.any(below)}, {self.any(below)})"
            case 1:
                return f"{self.pick('substring-before', 'substring-after')}({self.any(below)}, {self.any(below)})"
            case 2:
                more = f", {self.any(below)}" if self.random.random() < 0.5 else ""
                return f"substring({self.any(below)}, {self.number(below)}{more})"
            case 3:
                return f"normalize-space({self.any(below)})"
            case 4:
                return f"translate({self.any(below)}, {self.string(0)}, {self.string(0)})"
            case 5:
                return f"{self.pick('name', 'local-name', 'namespace-uri')}({self.nodes(below)})"
            case 6:
                return self.pick("string()", "normalize-space()", "name()", "local-name()", "namespace-uri()")
            case 7:
                return f"string({self.any(below)})"
            case _:
                return self.string(0)

    def nodes(self, depth: int) -> str:
        if depth <= 0:
            return self.path(0)
        below = depth - 1
        match self.random.randrange(10):
            case 0:
                return f"({self.path(below)} | {self.path(below)})"
            case 1:
                return f"({self.path(below)}){self.predicates(below) or '[1]'}"
            case 2:
                return f"({self.path(below)})/{self.relative(below)}"
            case 3:
                return self.pick(".", "..", "@*", "text()", "*")
            case 4:
                return f"id({self.any(below)})"
            case _:
                return self.path(below)

    def path(self, depth: int) -> str:
        begin = self.pick("/", "//", "//", "", "", "")
        if begin == "/" and self.random.random() < 0.1:
            return "(/)"  # an operator after a slash would be the name of a step
        return begin + self.relative(depth)

    def relative(self, depth: int) -> str:
        steps = self.step(depth)
        while self.random.random() < 0.4:
            steps += self.pick("/", "/", "//") + self.step(depth)
        return steps

    def step(self, depth: int) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.05:
            return self.pick(".", "..")
        if kind < 0.6:
            return self.test() + self.predicates(depth)
        if kind < 0.72:
            test = self.pick("*", "f:*", *_ATTRIBUTES)
            return self.pick("@", "attribute::") + test + self.predicates(depth)
        if kind < 0.74:
            return "namespace::" + self.pick("*", "f", "xml", "node()") + self.predicates(depth)
        axis = random.choice(_FORWARD if random.random() < 0.5 else _REVERSE)
        return f"{axis}::{self.test()}{self.predicates(depth)}"

    def test(self) -> str:
        if self.random.random() < 0.7:
            return self.random.choice(_NAMES)
        return self.pick(
            "*", "*", "f:*", "node()", "text()", "comment()", "processing-instruction()", "processing-instruction('a')"
        )

    def predicates(self, depth: int) -> str:
        written = ""
        while depth > 0 and self.random.random() < 0.35:
            kind = self.random.random()
            if kind < 0.4:
                written += (
                    f"[{self.pick('1', '2', '3', 'last()', 'position() > 1', 'last() - 1', 'position() mod 2 = 1')}]"
                )
            else:
                written += f"[{self.any(depth - 1)}]"
        return written


def document(random: Random) -> str:
    """A small document with everything that a path can reach."""
    prolog = random.choice(("", "", "<!--1--><?a b?>", "<?xml version='1.0'?>"))
    if random.random() < 0.1:
        prolog += "<!DOCTYPE a [<!ATTLIST a i ID #IMPLIED><!ATTLIST b y CDATA 'x'>]>"
    epilog = random.choice(("", "", "<!--x-->", "<?c?>")) if "-->" in prolog else ""
    return prolog + _element(random, 0) + epilog


def _element(random: Random, depth: int) -> str:
    name = random.choice(("a", "b", "c", "d", "a", "b", "f:a", "g:b", "p:a"))
    attributes = {}
    for _ in range(random.randrange(3)):
        attributes[random.choice(("x", "y", "f:x", "xml:lang"))] = random.choice(_WORDS)
    if depth == 0:
        attributes |= {"xmlns:f": "urn:f", "xmlns:g": "urn:g", "xmlns:p": "urn:f"}
    if random.random() < 0.07:
        attributes["xmlns"] = random.choice(("urn:f", "urn:g", ""))
    if random.random() < 0.1:
        attributes[random.choice(("i", "xml:id"))] = random.choice("xyz") + str(random.randrange(10**9))
    written = "".join(f" {key}='{value}'" for key, value in attributes.items())
    content = ""
    for _ in range(random.randrange(4 if depth < 4 else 1)):
        kind = random.random()
        if kind < 0.6:
            content += _element(random, depth + 1)
        elif kind < 0.85:
            content += random.choice(_WORDS)
        else:
            content += random.choice(("<!--1-->", "<!--x-->", "<?a 2?>", "<?c?>", "&amp;", "<![CDATA[x]]>"))
    return f"<{name}{written}>{content}</{name}>"
