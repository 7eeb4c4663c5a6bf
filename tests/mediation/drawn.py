"""Random schema trees, operators that fit them, and documents of them."""

from random import Random

from pathcast.errors import MappingError
from pathcast.mediation import (
    Downgrade,
    Exchange,
    Insert,
    Move,
    Operator,
    Rename,
    SchemaNode,
    SchemaTree,
    ToElement,
    Upgrade,
)
from pathcast.mediation.mappings.document_object_tree import Item
from pathcast.mediation.mappings.operators_by_schema_node import Plan
from pathcast.mediation.schemas.schema_tree import parent_of

NAMES = "abcdefgh"
ATTRIBUTES = "xyz"


def drawn_tree(random: Random, depth: int = 4) -> SchemaTree:
    def node(level: int) -> SchemaNode:
        names = random.sample(NAMES, random.randrange(4)) if level < depth else []
        children = []
        for name in names:
            below = node(level + 1)
            children.append(
                SchemaNode(name, random.choice(("", "?", "*")), below.has_text, below.attributes, below.children)
            )
        attributes = tuple(random.sample(ATTRIBUTES, random.randrange(3)))
        return SchemaNode("r", "", random.random() < 0.4, attributes, tuple(children))

    return SchemaTree(node(1))


def drawn_operators(
    random: Random, tree: SchemaTree, count: int = 6, without: tuple[type[Operator], ...] = ()
) -> list[Operator]:
    """Operators of all kinds; those that conflict with earlier ones are omitted."""
    made: list[Operator] = []
    for _ in range(count):
        operator = _drawn_operator(random, tree)
        if operator is None or isinstance(operator, without):
            continue
        try:
            Plan(tree, [*made, operator])
        except MappingError:
            continue
        made.append(operator)
    return made


def _drawn_operator(random: Random, tree: SchemaTree) -> Operator | None:
    path = random.choice(list(tree.paths))
    node = tree[path]
    names = [child.name for child in node.children]
    if random.random() < 0.1 and parent_of(path):
        names.append(tree[parent_of(path)].name)  # what an exchange may have put there
    some = frozenset(random.sample(names, random.randint(1, len(names)))) if names else None
    match random.randrange(9):
        case 0:
            return Rename(path, random.choice("ABC"))
        case 1 if node.attributes:
            return Rename(f"{path}/@{random.choice(node.attributes)}", random.choice("XY"))
        case 2 if node.attributes:
            return ToElement(path, random.choice(node.attributes), random.choice((None, "N", "b")))
        case 3:
            steps = tuple(random.choice("PQ") for _ in range(random.randint(1, 3)))
            return Insert(path, steps, random.choice((some, some, None)))
        case 4:
            return Upgrade(path, random.choice((some, some, None)))
        case 5 if some:
            return Downgrade(path, some, random.choice(names))
        case 6 if names:
            return Exchange(path, random.choice(names))
        case 7 | 8 if parent_of(path):
            above = random.choice([each for each in tree.paths if path.startswith(f"{each}/")])
            what = f"{path}/@{random.choice(node.attributes)}" if node.attributes and random.random() < 0.5 else path
            steps = tuple(random.choice("PQ") for _ in range(random.randrange(3)))
            children = [child.name for child in tree[above].children]
            into = random.choice(children) if random.random() < 0.5 else None
            return Move(what, above, () if into else steps, into, random.choice((None, "M")) if "@" in what else None)
    return None


def drawn_document(random: Random, tree: SchemaTree) -> Item:
    def item(node: SchemaNode) -> Item:
        attributes = {name: random.choice(("", "1", "<&\n")) for name in node.attributes if random.random() < 0.7}
        made = Item(node.name, attributes)
        for _ in range(random.randrange(5) if node.children or random.random() < 0.2 else 0):
            if random.random() < 0.4:
                made.content.append(random.choice(("t", "u&\r", " \n")))
            if not node.children or random.random() < 0.1:
                made.content.append(Item("unknown", {"x": "1"}, [Item("a"), "v"]))
            else:
                made.content.append(item(random.choice(node.children)))
        if random.random() < 0.5:
            made.content.append("w")
        return made

    return item(tree.root)
