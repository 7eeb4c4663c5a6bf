"""Random patterns over the whole fragment.

A pattern is drawn from a sample document: its path follows a chain of elements that is there, its branches other parts
of the same element, its literals the values found at their ends. Each choice is then spoilt with some probability, so
that patterns match a fair share of documents and miss the others for all kinds of reasons.
"""

import re
from random import Random

from lxml import etree

from tests.generators.documents import ATTRIBUTES, NAMES, NAMESPACES, ODD_NAMES, random_value
from tests.generators.expressions import Call, Comparison, Condition, Junction, Negation, Path, Step

_OPERATORS = ("=", "=", "=", "!=", "<", "<=", ">", ">=")
_NUMBERS = ("5", "-5", "0", "10", ".5", "5.", "4.5", "1000", "0.1", "-0", "05", "0.3", "- 5", "5.0", "7.25", "6")
_XPATH_NUMBER = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_PREFIX_OF = {uri: prefix for prefix, uri in NAMESPACES.items()}
_XML = "{http://www.w3.org/XML/1998/namespace"
_MOST_NESTED = 3


def random_pattern(random: Random, sample: etree._Element) -> Path:
    """A pattern that the document of `sample` (its root) may well match."""
    return _Asker(random, sample).pattern()


class _Asker:
    """Invents paths and conditions about one document."""

    def __init__(self, random: Random, root: etree._Element) -> None:
        self.random = random
        self.root = root
        self.elements = list(root.iter("{*}*"))

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # Paths.

    def pattern(self) -> Path:
        steps, end = self.downward(None, nested=0)
        lead = self.random.choice(("/", "//", "//", ""))
        first = steps[0]
        if lead == "/" and first.axis == "//":
            lead = "//"
        steps[0] = Step(lead, first.test, first.predicates)
        if lead == "" and self.chance(0.2):
            steps = [Step("", "."), Step(self.random.choice(("/", "//")), first.test, first.predicates), *steps[1:]]
        if self.chance(0.25):
            steps.append(self.value_step(end, nested=0))
        return Path(tuple(self.with_dots(steps)))

    def downward(self, context: etree._Element | None, nested: int) -> tuple[list[Step], etree._Element]:
        """Steps from an element (from the document, if None) to one below, and where they lead in the sample."""
        end = self.random.choice(self.below(context) or self.elements)
        chain = [end]
        while (above := chain[0].getparent()) is not None and above is not context:
            chain.insert(0, above)
        steps: list[Step] = []
        skipped = False
        for element in chain:
            if element is not end and self.chance(0.5):
                skipped = True
                continue
            axis = "//" if skipped or self.chance(0.15) else "/"
            predicates = tuple(self.predicates(element, nested))
            steps.append(Step(axis, self.element_test(element), predicates))
            skipped = False
        return steps, end

    def below(self, context: etree._Element | None) -> list[etree._Element]:
        if context is None:
            return self.elements
        children = list(context.iterchildren("{*}*"))
        if self.chance(0.6):
            return children
        return [element for child in children for element in child.iter("{*}*")]

    def with_dots(self, steps: list[Step]) -> list[Step]:
        """Sometimes a dot, which changes nothing, or only that the next step may skip levels."""
        for index in range(len(steps), 0, -1):
            if self.chance(0.03):
                below = index < len(steps)
                steps.insert(index, Step(self.random.choice(("/", "/", "//")) if below else "/", "."))
        return steps

    def element_test(self, element: etree._Element) -> str:
        if self.chance(0.15):
            return "*"
        if self.chance(0.05):
            return self.random.choice((*NAMES, *ODD_NAMES))
        return self.name(element.tag)

    def name(self, clark: str) -> str:
        """`{uri}local` with the prefix that patterns use for the namespace."""
        uri, _, local = clark.rpartition("}")
        if not uri:
            return local
        prefix = "xml" if uri == _XML else _PREFIX_OF[uri[1:]]
        return f"{prefix}:{local}"

    def attribute_test(self, element: etree._Element) -> tuple[str, str]:
        """An attribute, mostly one that the element has, and its value."""
        if element.attrib and self.chance(0.85):
            name, value = self.random.choice(element.items())
            return "@" + self.name(name), value
        return "@" + self.random.choice(ATTRIBUTES), random_value(self.random)

    # Conditions.

    def predicates(self, element: etree._Element, nested: int) -> list[Condition]:
        chances = (0.25, 0.12, 0.05, 0.0)[min(nested, _MOST_NESTED)]
        return [self.condition(element, nested + 1) for _ in range(2) if self.chance(chances)]

    def condition(self, element: etree._Element, nested: int) -> Condition:
        form = self.random.random()
        if form < 0.2 and nested < _MOST_NESTED:
            parts = tuple(self.condition(element, nested + 1) for _ in range(self.random.choice((2, 2, 3))))
            return Junction(self.random.choice(("and", "or")), parts, self.chance(0.5))
        if form < 0.3:
            return Negation(self.condition(element, nested + 1))
        path, value = self.operand(element, nested)
        if form < 0.55:
            return path
        if _compares_anything(path):
            return path
        if form < 0.85:
            return Comparison(path, self.random.choice(_OPERATORS), self.literal(value), self.chance(0.2))
        return Call(self.random.choice(("contains", "starts-with")), path, self.part(value))

    def operand(self, element: etree._Element, nested: int) -> tuple[Path, str]:
        """A path from the element, or from the document, and a value that it may have at its end."""
        form = self.random.random()
        if form < 0.15:
            return Path((Step("", "."),)), _string_value(element)
        if form < 0.4:
            test, value = self.attribute_test(element)
            return Path((Step("", test, self.tests(value, nested)),)), value
        if form < 0.5:
            value = self.random.choice([*_text_nodes(element), random_value(self.random)])
            return Path((Step("", "text()", self.tests(value, nested)),)), value
        absolute = form > 0.93
        steps, end = self.downward(None if absolute else element, nested)
        value = _string_value(end)
        if self.chance(0.35):
            step = self.value_step(end, nested)
            steps.append(step)
            value = self.random.choice([*_text_nodes(end), *end.attrib.values(), random_value(self.random)])
        steps = self.with_dots(steps)
        if not absolute:
            steps = self.relative(steps)
        return Path(tuple(steps)), value

    def relative(self, steps: list[Step]) -> list[Step]:
        """`//a` at the start of a relative path is `.//a`."""
        first = steps[0]
        if first.axis == "//" or self.chance(0.1):
            return [Step("", "."), *steps]
        return [Step("", first.test, first.predicates), *steps[1:]]

    def value_step(self, element: etree._Element, nested: int) -> Step:
        axis = "//" if self.chance(0.2) else "/"
        if self.chance(0.6):
            test, value = self.attribute_test(element)
        else:
            test, value = "text()", self.random.choice([*_text_nodes(element), random_value(self.random)])
        return Step(axis, test, self.tests(value, nested))

    def tests(self, value: str, nested: int) -> tuple[Condition, ...]:
        """Predicates of an attribute or text step: they look at the node itself, or at the document."""
        if not self.chance(0.2):
            return ()
        return tuple(self.test(value, nested) for _ in range(self.random.choice((1, 1, 2))))

    def test(self, value: str, nested: int) -> Condition:
        itself = Path((Step("", "."),))
        form = self.random.random()
        if form < 0.1:
            return Negation(self.test(value, nested))
        if form < 0.25:
            return Junction(
                self.random.choice(("and", "or")), (self.test(value, nested), self.test(value, nested)), True
            )
        if form < 0.3 and nested < _MOST_NESTED:
            return Path(tuple(self.downward(None, nested + 1)[0]))
        if form < 0.75:
            return Comparison(itself, self.random.choice(_OPERATORS), self.literal(value), self.chance(0.2))
        return Call(self.random.choice(("contains", "starts-with")), itself, self.part(value))

    # Literals.

    def literal(self, value: str) -> str:
        if self.chance(0.5):
            stripped = value.strip()
            return stripped if self.chance(0.6) and _XPATH_NUMBER.fullmatch(stripped) else self.random.choice(_NUMBERS)
        return _quoted(value if self.chance(0.75) else random_value(self.random))

    def part(self, value: str) -> str:
        """A piece of the value, its beginning, or something else, for contains() and starts-with()."""
        if self.chance(0.2) or not value:
            return _quoted(random_value(self.random))
        begin = 0 if self.chance(0.5) else self.random.randrange(len(value))
        return _quoted(value[begin : begin + self.random.randint(0, 4)])


def _compares_anything(path: Path) -> bool:
    """Whether the path ends in `//.`, whose value the fragment leaves undefined (it would be comments too)."""
    return any(step.test == "." and step.axis == "//" for step in path.steps)


def _quoted(value: str) -> str:
    """An XPath string literal; one with both kinds of quotes loses the double ones."""
    if "'" not in value:
        return f"'{value}'"
    return '"' + value.replace('"', "") + '"'


def _string_value(element: etree._Element) -> str:
    return "".join(element.itertext("{*}*"))


def _text_nodes(element: etree._Element) -> list[str]:
    return [text for text in (element.text, *(child.tail for child in element)) if text]
