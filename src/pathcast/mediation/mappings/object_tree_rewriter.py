"""Static rewriting of a local document to a global one, as items. It defines the semantics of the operators.

Two walks. Exchanges first, from the root downwards: an exchanged element is visited again at its new place. Then all
other operators at once: each child goes to the place in its parent's plan. Property tests hold the other ways of
rewriting equal to this one.

Invariant: elements that the local schema does not have keep their name, their place and their content.
Cost: one object per element; an exchange copies E once per F, so the size of a rewritten document is bounded (`limit`).
"""

from collections.abc import Iterator

from pathcast.errors import LimitError, MappingError

from .document_object_tree import Item
from .operators_by_schema_node import Down, Into, Plan, Up

# Elements of a rewritten document.
LIMIT = 10_000_000


class Placed:
    """An element with its node in the local schema tree; `path` is None for an element that the schema does not have.

    `content` is that of the item after exchanges; an element without a path keeps the item's content.
    """

    __slots__ = ("content", "item", "path")

    def __init__(self, item: Item, path: str | None, content: "list[Placed | str]") -> None:
        self.item = item
        self.path = path
        self.content = content


def rewrite(root: Item, plan: Plan, *, limit: int = LIMIT) -> Item:
    """The document in the global schema; `MappingError` when it is not one of the local schema."""
    expected = plan.tree.root.name
    if root.name != expected:
        raise MappingError(
            f"the document's root element is '{root.name}', but its schema has the root '{expected}'; give the schema "
            "that the document follows"
        )
    return _Rewriting(plan, limit).run(root)


class _Rewriting:
    def __init__(self, plan: Plan, limit: int) -> None:
        self.plan = plan
        self.room = limit
        self.limit = limit

    def run(self, root: Item) -> Item:
        roots = list(self._exchanged(self._placed(root, self.plan.tree.root.name)))
        if len(roots) > 1:
            name = self.plan.nodes[self.plan.tree.root.name].exchange
            raise MappingError(
                f"the document's root has {len(roots)} children '{name}', but the mapping needs one, "
                "which becomes the root; split the document"
            )
        return self._rewritten(roots[0], is_root=True)[0]

    def _placed(self, item: Item, path: str | None) -> Placed:
        content: list[Placed | str] = []
        for part in item.content if path is not None else ():
            if isinstance(part, str):
                content.append(part)
                continue
            below = f"{path}/{part.name}"
            content.append(self._placed(part, below if below in self.plan.tree else None))
        return Placed(item, path, content)

    # Exchanges.

    def _exchanged(self, element: Placed) -> Iterator[Placed]:
        """The elements that take an element's place."""
        plan = self.plan.nodes[element.path] if element.path is not None else None
        taker = f"{element.path}/{plan.exchange}" if plan is not None and plan.exchange is not None else None
        takers = [part for part in element.content if isinstance(part, Placed) and part.path == taker] if taker else []
        if not takers:
            yield self._deeper(element)
            return
        rest = [part for part in element.content if not (isinstance(part, Placed) and part.path == taker)]
        for each in takers:
            self._count(element)
            inside = Placed(element.item, element.path, rest)
            # E has been exchanged; its copy is visited, but not exchanged again, since it has no F left.
            yield from self._exchanged(Placed(each.item, each.path, [*each.content, inside]))

    def _deeper(self, element: Placed) -> Placed:
        content: list[Placed | str] = []
        for part in element.content:
            if isinstance(part, str):
                content.append(part)
            else:
                content.extend(self._exchanged(part))
        return Placed(element.item, element.path, content)

    def _count(self, element: Placed) -> None:
        self.room -= element.item.size()
        if self.room < 0:
            raise LimitError(
                f"the rewritten document has more than {self.limit:,} elements; split the document, or raise limit=…"
            )

    # All other operators.

    def _rewritten(self, element: Placed, *, is_root: bool = False) -> list[Item]:
        """An element, followed by the elements that were upgraded out of it."""
        if element.path is None:
            return [element.item]
        plan = self.plan.nodes[element.path]
        made = Item(plan.name)
        for name, value in element.item.attributes.items():
            if all(name != taken for taken, _ in plan.elements):
                made.attributes.setdefault(plan.attributes.get(name, name), value)
        for attribute, name in plan.elements:
            if attribute in element.item.attributes:
                value = element.item.attributes[attribute]
                made.content.append(Item(name, content=[value] if value else []))
        firsts: dict[str, Item] = {}  # the first child of each name, rewritten
        downgraded: list[tuple[str, list[Item]]] = []
        inserted = Item("")
        behind: list[Item] = []
        expected = self.plan.children[element.path]
        present = {
            part.item.name
            for part in element.content
            if isinstance(part, Placed) and expected.get(part.item.name) == part.path
        }
        for part in element.content:
            if isinstance(part, str):
                made.content.append(part)
                continue
            items = self._rewritten(part)
            # An element with an exchange but without a child to exchange with is at a place that no plan covers.
            is_expected = part.path is not None and expected.get(part.item.name) == part.path
            if is_expected:
                firsts.setdefault(part.item.name, items[0])
            match plan.place(part.item.name) if is_expected else plan.elsewhere:
                case Into(path):
                    _below(inserted, path).content.extend(items)
                case Up() if not is_root:
                    behind.extend(items)
                case Down(into) if into in present:
                    downgraded.append((into, items))
                case _:
                    made.content.extend(items)
        for into, items in downgraded:
            firsts[into].content.extend(items)
        made.content.extend(inserted.content)
        return [made, *behind]


def _below(item: Item, path: tuple[str, ...]) -> Item:
    """The item at the end of a path of new elements, created if needed."""
    for name in path:
        found = next((child for child in item.elements if child.name == name), None)
        if found is None:
            found = Item(name)
            item.content.append(found)
        item = found
    return item
