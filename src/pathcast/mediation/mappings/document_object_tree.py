"""Objects: a document as a small tree of Python objects, for the reference rewriting and for output that people read.

Comments and processing instructions are omitted: no subscription can match them.
Cost: one object per element. Hot paths work on element arrays.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from pathcast.documents import XML_NAMESPACE, Document, local_part


@dataclass(slots=True)
class Item:
    """An element: its expanded name, its attributes, its content (text and elements, in order)."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    content: "list[Item | str]" = field(default_factory=list)

    @property
    def elements(self) -> "Iterator[Item]":
        """The child elements."""
        return (part for part in self.content if isinstance(part, Item))

    def size(self) -> int:
        """The number of elements, itself included."""
        return sum(1 for _ in self.walk())

    def walk(self) -> "Iterator[Item]":
        """All elements, in document order."""
        stack = [self]
        while stack:
            item = stack.pop()
            yield item
            stack.extend(reversed(list(item.elements)))


def item_of(document: Document) -> Item:
    """A parsed document as items."""
    batch, first = document.batch, document.first
    made: list[Item] = []
    texts = [int(batch.text_begin[first])] if len(document) else []

    def text_up_to(end: int) -> None:
        for index in range(texts[0], end):
            made[int(batch.text_parent[index]) - first].content.append(batch.text_node(index).decode())
        texts[0] = max(texts[0], end)

    for element in range(len(document)):
        text_up_to(int(batch.text_begin[first + element]))
        item = Item(document.name(element), document.attributes(element))
        if element:
            made[document.parent(element)].content.append(item)
        made.append(item)
    text_up_to(int(batch.text_end[first]))
    return made[0]


def to_bytes(root: Item) -> bytes:
    """A tree of items as a document, in UTF-8."""
    prefixes: dict[str, str] = {XML_NAMESPACE: "xml"}

    def written(name: str) -> str:
        local = local_part(name)
        if local == name:
            return name
        return f"{prefixes.setdefault(name[1 : -len(local) - 1], f'n{len(prefixes)}')}:{local}"

    out: list[str] = []
    stack: list[Item | str] = [root]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            out.append(part)
            continue
        name = written(part.name)
        # Line ends and tabs in a value are written as references, or reading would change them.
        attributes = "".join(
            f" {written(key)}={quoteattr(value, {chr(13): '&#13;', chr(10): '&#10;', chr(9): '&#9;'})}"
            for key, value in part.attributes.items()
        )
        if not part.content:
            out.append(f"<{name}{attributes}/>")
            continue
        out.append(f"<{name}{attributes}>")
        stack.append(f"</{name}>")
        stack.extend(
            escape(each, {chr(13): "&#13;"}) if isinstance(each, str) else each for each in reversed(part.content)
        )
    declarations = "".join(
        f" xmlns:{prefix}={quoteattr(uri)}" for uri, prefix in prefixes.items() if uri != XML_NAMESPACE
    )
    if declarations:
        start = len("<" + written(root.name))
        out[0] = out[0][:start] + declarations + out[0][start:]
    return "".join(out).encode()
