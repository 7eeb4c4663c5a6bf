"""Values of attributes and texts in generated documents, shared with predicates so that these can match.

As in the generators of the literature, a value is an integer drawn uniformly from 1..max, with max drawn once per
attribute and per element from 1..largest. Enumerated and fixed attributes keep the values of the schema, identifiers
are names (`i7`). With `text="words"` texts and free attributes are readable instead (phrase_templates.py).

Every draw depends on the seed and on the names alone, not on the order of declarations: documents and subscriptions
that are generated with the same seed from the same schema share their domains, in any process.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from pathcast.documents.schema import Attribute, Schema

TextStyle = Literal["integers", "words"]


# The most values of a domain: each of them is stored.
LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of one attribute or text, each equally likely. Numeric ones have an order."""

    values: tuple[str, ...]
    numeric: bool


def draw(seed: int, *key: str) -> float:
    """A number in [0, 1) that depends on the seed and the key only, the same in every process."""
    digest = blake2b("\x1f".join((str(seed), *key)).encode(), digest_size=7).digest()
    return int.from_bytes(digest) / (1 << 56)


class Values:
    """The domains of a schema's attributes and texts for one seed."""

    def __init__(self, schema: Schema, *, seed: int = 0, largest: int = 20, text: TextStyle = "integers") -> None:
        if not 1 <= largest <= LARGEST:
            raise ValueError(f"largest must be from 1 to {LARGEST:,}, got {largest}")
        if text not in ("integers", "words"):
            raise ValueError(f"text must be 'integers' or 'words', got {text!r}")
        self.schema = schema
        self.seed = seed
        self.largest = largest
        self.text = text

    def of_attribute(self, element: str, attribute: Attribute) -> Domain:
        """The values of an attribute of an element."""
        if attribute.use == "fixed":
            return _given((attribute.value or "",))
        if attribute.choices:
            return _given(attribute.choices)
        highest = self._highest(element, "@" + attribute.name)
        if attribute.type in ("ID", "IDREF", "IDREFS"):
            return Domain(tuple(f"i{number}" for number in range(1, highest + 1)), False)
        if self.text == "words":
            from pathcast.workloads.phrase_templates import attribute_values

            words = attribute_values(element, attribute, self.seed)
            if words is not None:
                return _given(words)
        return _integers(highest)

    def of_text(self, element: str) -> Domain:
        """The values of a text node in an element."""
        if self.text == "words":
            from pathcast.workloads.phrase_templates import phrases

            return _given(phrases(element, self.seed))
        return _integers(self._highest(element, "text()"))

    def of_tail(self, element: str) -> Domain:
        """Readable text after a child element; empty if there is none."""
        if self.text != "words":
            return Domain((), False)
        from pathcast.workloads.phrase_templates import tails

        return _given(tails(element, self.seed))

    def of_search(self, element: str) -> Domain | None:
        """Search terms for readable text; None if texts are numbers to compare."""
        if self.text != "words":
            return None
        from pathcast.workloads.phrase_templates import search_terms

        return Domain(search_terms(element), False)

    def presence(self, element: str, attribute: Attribute) -> float:
        """The probability of an optional attribute, if it is drawn per attribute."""
        return draw(self.seed, "presence", element, attribute.name)

    def _highest(self, element: str, what: str) -> int:
        return 1 + int(draw(self.seed, "highest", element, what) * self.largest)


def _integers(highest: int) -> Domain:
    return Domain(tuple(map(str, range(1, highest + 1))), True)


def _given(values: tuple[str, ...]) -> Domain:
    return Domain(values, all(value.isascii() and value.isdigit() for value in values))
