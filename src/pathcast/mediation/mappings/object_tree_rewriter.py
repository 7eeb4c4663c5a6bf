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
from .operators_by_schema_node import Down, Into, Place, Plan, Up

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
        return self._rewritten(roots[0], is_root=True).item

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

    def _rewritten(self, element: Placed, *, is_root: bool = False) -> "_Rewritten":
        """An element, with what leaves it."""
        if element.path is None:
            return _Rewritten(element.item)
        plan, expected = self.plan.nodes[element.path], self.plan.children[element.path]
        present = {
            part.item.name
            for part in element.content
            if isinstance(part, Placed) and expected.get(part.item.name) == part.path
        }
        made = _Made(Item(plan.name), present, is_root)
        attributes, leaving = element.item.attributes, plan.leaving
        for name, value in attributes.items():
            if name not in leaving:
                made.item.attributes.setdefault(plan.attributes.get(name, name), value)
        for attribute, name in plan.elements:
            if attribute in attributes:
                made.item.content.append(_with_text(name, attributes[attribute]))
        for attribute, name, place in plan.moved:
            if attribute in attributes:
                made.put(place.up, place, [_with_text(name, attributes[attribute])])
        for part in element.content:
            if isinstance(part, str):
                made.item.content.append(part)
                continue
            # An element with an exchange but without a child to exchange with is at a place that no plan covers.
            is_expected = part.path is not None and expected.get(part.item.name) == part.path
            found = self._rewritten(part)
            if is_expected:
                made.firsts.setdefault(part.item.name, found.item)
            made.add(found, plan.place(part.item.name) if is_expected else plan.elsewhere)
        return made.done()


class _Rewritten:
    """An element, the elements that were upgraded out of it, and those that move further up, with their levels."""

    __slots__ = ("behind", "item", "leaving")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.behind: list[Item] = []
        self.leaving: list[tuple[int, Into | Down, list[Item]]] = []


class _Made(_Rewritten):
    """An element that is being made."""

    __slots__ = ("downgraded", "firsts", "inserted", "is_root", "present")

    def __init__(self, item: Item, present: set[str], is_root: bool) -> None:
        super().__init__(item)
        self.present = present
        self.is_root = is_root
        self.firsts: dict[str, Item] = {}  # the first child of each name, rewritten
        self.downgraded: list[tuple[str, list[Item]]] = []
        self.inserted = Item("")

    def put(self, up: int, place: Into | Down, items: list[Item]) -> None:
        """Put elements at a place of this element, or pass them on to one further up."""
        if up:
            self.leaving.append((up, place, items))
        elif isinstance(place, Into):
            _below(self.inserted, place.path).content.extend(items)
        elif place.into in self.present:
            self.downgraded.append((place.into, items))
        else:
            self.item.content.extend(items)

    def add(self, child: _Rewritten, place: Place | None) -> None:
        """Put a child at its place, with the elements behind it, and what leaves it further up."""
        match place:
            case Down(up=up):
                self.put(up, place, [child.item, *child.behind])
                self._pass_on(child)
            case Into(up=up):
                self.put(up, place, [child.item])
                self._pass_on(child)
                self.put(up, place, child.behind)
            case _:
                to = self.behind if isinstance(place, Up) and not self.is_root else self.item.content
                to.append(child.item)
                self._pass_on(child)
                to.extend(child.behind)

    def _pass_on(self, child: _Rewritten) -> None:
        for up, place, items in child.leaving:
            self.put(up - 1, place, items)

    def done(self) -> _Rewritten:
        for into, items in self.downgraded:
            self.firsts[into].content.extend(items)
        self.item.content.extend(self.inserted.content)
        return self


def _with_text(name: str, text: str) -> Item:
    return Item(name, content=[text] if text else [])


def _below(item: Item, path: tuple[str, ...]) -> Item:
    """The item at the end of a path of new elements, created if needed."""
    for name in path:
        found = next((child for child in item.elements if child.name == name), None)
        if found is None:
            found = Item(name)
            item.content.append(found)
        item = found
    return item
