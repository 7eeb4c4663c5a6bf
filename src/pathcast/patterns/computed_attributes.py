"""Computed attributes: places and counts of elements, tested as if the document had written them into attributes.

    //p[2]/q                        //p[@position(p) = 2]/q
    //p[last()]                     //p[@from-end(p) = 1]
    //p[count(q) >= 3]              //p/q[@position(q) = 3]
    (//p)[2]                        //p[@document-position(p) = 2]

The name of a computed attribute is that of its measure and, in parentheses, the node test of the elements that have the
attribute: `p`, `{uri}p`, or `*` for all. No attribute in a document has such a name, because of the parentheses.
The automaton engine computes the values (`matching/automaton/places`); all others evaluate the expression.

Invariant: every element that passes the node test has the attribute, and its value is a positive integer.
"""

from typing import NamedTuple

POSITION, FROM_END, TOTAL = "position", "from-end", "total"
OF_DOCUMENT, OF_ALL = "document-", "-of-all"
MEASURES = (
    POSITION,
    FROM_END,
    TOTAL,
    OF_DOCUMENT + POSITION,
    OF_DOCUMENT + FROM_END,
    OF_DOCUMENT + TOTAL,
    POSITION + OF_ALL,
    FROM_END + OF_ALL,
    TOTAL + OF_ALL,
)
"""What is counted, from 1: an element's place among its siblings that pass the same node test, its place counted from
the last one, and their number; with `document-` the same among such elements of the whole document, in document order;
with `-of-all` the same among all its siblings that are elements.
"""


class ComputedAttribute(NamedTuple):
    """A measure of the elements that pass a node test: a name, or `*`."""

    measure: str
    element: str

    @property
    def name(self) -> str:
        """The attribute's name."""
        return f"{self.measure}({self.element})"


def computed_attribute(name: str) -> ComputedAttribute | None:
    """The computed attribute with this name; None for every other name."""
    measure, opening, element = name.partition("(")
    return ComputedAttribute(measure, element[:-1]) if opening and measure in MEASURES else None
