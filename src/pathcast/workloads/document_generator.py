"""Generate documents from a schema, in the way that is usual in the literature.

A document grows from the root by expanding content models at random: `?` in half of the cases, `*` and `+` up to
`max_repeats` times, one alternative of a choice. An element `max_levels` or more below the root gets only its required
children, each once and by the shallowest alternative (`Schema.shallowest`), so that a document may be a little deeper
but always ends. The same holds beyond `max_elements`. Text comes first in mixed content; values are those of
value_pools.py.

Every document is valid: attributes have values of their type, identifiers are unique, references point at identifiers
that exist. Document `n` depends on schema, settings, seed and `n` alone, so that parts of a collection can be generated
separately.

Speed: each element is compiled to tables once. An attribute costs one random number, which decides its presence and its
value together: with m values and probability p, the draw is an integer below m / p, present below m.

Not done: attributes of type ENTITY (they are omitted; a required one raises an error), a DOCTYPE.
"""

from collections.abc import Callable, Iterator
from random import Random

from pathcast.documents.schema import Attribute, Element, Particle, Schema
from pathcast.errors import DocumentError, LimitError
from pathcast.workloads.generation_options import DocumentOptions
from pathcast.workloads.value_pools import TextStyle, Values

_DEFAULTS = DocumentOptions()
DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'


class Plan:
    """How to write one element. Children are plans; a single str in their place is text."""

    __slots__ = ("attributes", "end", "expand", "identifier", "lowest", "name", "references", "start", "texts")

    def __init__(self, name: str) -> None:
        self.name = name
        self.start = f"\n<{name}"
        self.end = EndTag(f"</{name}>")
        self.attributes: list[
            tuple[tuple[str, ...], int, float]
        ] = []  # written forms, their number, number / probability
        self.identifier: tuple[str, float] | None = None  # name of the ID attribute and its probability
        self.references: list[tuple[str, float, bool]] = []  # name, probability, required
        self.texts: tuple[str, ...] = ()
        self.expand: Expand | None = None
        self.lowest: tuple[Plan, ...] = ()


class EndTag(str):
    """An end tag on the stack."""

    __slots__ = ()


Children = list[Plan | str]
Expand = Callable[[Children], None]


def generate_documents(
    schema: Schema,
    count: int,
    options: DocumentOptions = _DEFAULTS,
    *,
    seed: int = 0,
    largest: int = 20,
    text: TextStyle = "integers",
    values: Values | None = None,
    start: int = 0,
) -> Iterator[bytes]:
    """`count` valid documents in UTF-8, numbered from `start`.

    largest, text: bounds and style of the values (value_pools.py); `values` overrides both and the seed of the domains.

    >>> from pathcast.workloads import generate_documents, news_schema
    >>> documents = list(generate_documents(news_schema(), 2, seed=7))
    >>> documents == list(generate_documents(news_schema(), 2, seed=7)), documents[0][:5]
    (True, b'<?xml')
    """
    if count < 0 or start < 0:
        raise ValueError(f"count and start must be at least 0, got count={count} and start={start}")
    domains = values if values is not None else Values(schema, seed=seed, largest=largest, text=text)
    return map(DocumentGenerator(schema, domains, options, seed=seed).document, range(start, start + count))


class DocumentGenerator:
    """A schema compiled for writing documents. Not for use by several threads at once."""

    def __init__(self, schema: Schema, values: Values, options: DocumentOptions, *, seed: int) -> None:
        if schema.height(schema.root) is None:
            raise DocumentError(
                f"the root '{schema.root}' cannot produce a finite document: its required content is recursive; "
                "choose another root"
            )
        self.schema = schema
        self.values = values
        self.seed = seed
        self.max_levels = options.max_levels
        self.max_repeats = options.max_repeats
        self.attribute_probability = options.attribute_probability
        self.max_elements = options.max_elements
        self._random = Random()
        reachable = schema.reachable(schema.root)
        names = [name for name in schema.elements if name in reachable and schema.height(name) is not None]
        _check_prefixes([schema[name] for name in names])
        self._plans = {name: Plan(name) for name in names}
        for plan in self._plans.values():
            self._compile(plan, schema[plan.name])

    def document(self, number: int) -> bytes:
        """The document with that number."""
        for force_identifiers in (False, True):
            self._random.seed(f"pathcast/document/{self.seed}/{number}")
            parts = self._write(force_identifiers)
            if parts is not None:
                return "".join(parts).encode()
        raise DocumentError("a required IDREF attribute has no ID to refer to; declare an attribute of type ID")

    def _write(self, force_identifiers: bool) -> list[str] | None:
        """The pieces of one document; None if a required reference has no identifier to refer to."""
        random = self._random.random
        out = [DECLARATION]
        append = out.append
        stack: Children = [self._plans[self.schema.root]]
        depth = elements = identifiers = 0
        references: list[tuple[int, str, bool]] = []
        while stack:
            item = stack.pop()
            if not isinstance(item, Plan):
                append(item)
                depth -= type(item) is EndTag
                continue
            elements += 1
            depth += 1
            append(item.start)
            if item.identifier is not None and (random() < item.identifier[1] or force_identifiers):
                identifiers += 1
                append(f' {item.identifier[0]}="i{identifiers}"')
            for forms, choices, scale in item.attributes:
                at = int(random() * scale)
                if at < choices:
                    append(forms[at])
            for name, probability, required in item.references:
                if random() < probability:
                    references.append((len(out), name, required))
                    append("")
            children = self._children(item, depth, elements)
            if item.texts:
                append(">" + item.texts[int(random() * len(item.texts))])
            elif children:
                append(">")
            else:
                append("/>")
                depth -= 1
                continue
            stack.append(item.end)
            children.reverse()
            stack += children
        append("\n")
        return self._refer(out, references, identifiers)

    def _children(self, plan: Plan, depth: int, elements: int) -> Children:
        children: Children = []
        if depth <= self.max_levels and elements < self.max_elements:
            if plan.expand is not None:
                plan.expand(children)
            return children
        if elements > 10 * self.max_elements:
            raise LimitError(
                f"the schema requires more than {elements - 1:,} elements in a document; at most "
                f"{10 * self.max_elements:,} (10 times max_elements) are allowed; increase max_elements"
            )
        children += plan.lowest
        return children

    def _refer(self, out: list[str], references: list[tuple[int, str, bool]], identifiers: int) -> list[str] | None:
        """Let each reference refer to one of the identifiers; omit optional references if there are none."""
        for at, name, required in references:
            if identifiers:
                out[at] = f' {name}="i{1 + int(self._random.random() * identifiers)}"'
            elif required:
                return None
        return out

    def _compile(self, plan: Plan, element: Element) -> None:
        for attribute in element.attributes:
            self._compile_attribute(plan, element.name, attribute)
        if element.has_text:
            plan.texts = tuple(map(_escape, self.values.of_text(element.name).values))
        plan.lowest = tuple(self._plans[child] for child in self.schema.shallowest(element.name))
        if element.content is not None:
            plan.expand = self._mixed(element) if element.has_text else self._expander(element.content)

    def _compile_attribute(self, plan: Plan, element: str, attribute: Attribute) -> None:
        probability = self.attribute_probability
        if attribute.use == "required":
            probability = 1.0
        elif probability is None:
            probability = self.values.presence(element, attribute)
        if attribute.name == "xmlns" or attribute.name.startswith("xmlns:"):
            if attribute.value is not None or attribute.use == "required":
                plan.start += _written(attribute.name, attribute.value or "urn:" + attribute.name[6:])
        elif attribute.type in ("ENTITY", "ENTITIES"):
            if attribute.use == "required":
                reason = f"attribute '{attribute.name}' of '{element}' is a required {attribute.type}"
                raise DocumentError(
                    f"{reason}; generated documents have no unparsed entities, so make the attribute #IMPLIED"
                )
        elif probability == 0:
            return
        elif attribute.type == "ID":
            plan.identifier = (attribute.name, probability)
        elif attribute.type in ("IDREF", "IDREFS"):
            plan.references.append((attribute.name, probability, attribute.use == "required"))
        else:
            forms = tuple(_written(attribute.name, v) for v in self.values.of_attribute(element, attribute).values)
            plan.attributes.append((forms, len(forms), len(forms) / probability))

    def _mixed(self, element: Element) -> Expand | None:
        """Text, then up to `max_repeats` elements; readable text also continues after each of them."""
        alternatives = [self._plans[name] for name in self.schema.children[element.name] if name in self._plans]
        if not alternatives or element.content is None or not element.content.repeats:
            return None
        random, span, width = self._random.random, self.max_repeats + 1, len(alternatives)

        def expand(children: Children) -> None:
            for _ in range(int(random() * span)):
                children.append(alternatives[int(random() * width)])

        tails = tuple(" " + _escape(tail) for tail in self.values.of_tail(element.name).values)
        if not tails:
            return expand

        def expand_with_text(children: Children) -> None:
            for _ in range(int(random() * span)):
                children.append(alternatives[int(random() * width)])
                children.append(tails[int(random() * len(tails))])

        return expand_with_text

    def _expander(self, particle: Particle) -> Expand | None:
        """A function that appends one random expansion of the particle; None if it is always empty."""
        if not self._can_appear(particle):
            return None
        low = 0 if particle.optional else 1
        high = self.max_repeats if particle.repeats else 1
        random, span = self._random.random, high - low + 1
        if particle.kind == "element":
            plan = self._plans[particle.name]
            if low == high:
                return lambda children: children.append(plan)
            runs = tuple([plan] * times for times in range(low, high + 1))

            def append_run(children: Children) -> None:
                children += runs[int(random() * span)]

            return append_run
        once = self._sequence(particle) if particle.kind == "sequence" else self._choice(particle)
        if low == high or once is None:
            return once

        def repeat(children: Children) -> None:
            for _ in range(low + int(random() * span)):
                once(children)

        return repeat

    def _sequence(self, particle: Particle) -> Expand | None:
        parts = [part for part in map(self._expander, particle.parts) if part is not None]

        def expand(children: Children) -> None:
            for part in parts:
                part(children)

        return expand if parts else None

    def _choice(self, particle: Particle) -> Expand | None:
        random = self._random.random
        possible = [part for part in particle.parts if part.optional or self._can_appear(part)]
        width = len(possible)
        if all(part.kind == "element" and not part.occurrence for part in possible):
            plans = [self._plans[part.name] for part in possible]
            return lambda children: children.append(plans[int(random() * width)])
        parts = [self._expander(part) for part in possible]

        def expand(children: Children) -> None:
            part = parts[int(random() * width)]
            if part is not None:
                part(children)

        return expand

    def _can_appear(self, particle: Particle) -> bool:
        """Whether one occurrence of the particle has a finite expansion."""
        if particle.kind == "element":
            return particle.name in self._plans
        possible = (part.optional or self._can_appear(part) for part in particle.parts)
        return particle.kind == "text" or (all(possible) if particle.kind == "sequence" else any(possible))


def _check_prefixes(elements: list[Element]) -> None:
    """Reject a schema whose documents would use an undeclared namespace prefix."""
    attributes = {attribute.name for element in elements for attribute in element.attributes}
    for name in [*(element.name for element in elements), *sorted(attributes)]:
        prefix, colon, _ = name.partition(":")
        if colon and prefix not in ("xml", "xmlns") and f"xmlns:{prefix}" not in attributes:
            raise DocumentError(
                f"the schema uses the prefix of '{name}' without an attribute 'xmlns:{prefix}'; declare this attribute"
            )


def _escape(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _written(name: str, value: str) -> str:
    escaped = _escape(value).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
    return f' {name}="{escaped}"'
