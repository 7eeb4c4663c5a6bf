"""Random schemas: DTDs of different shapes, for collections of many kinds of documents.

A schema is drawn from its seed: how many elements, how deep and how broad; which element stands under which; how often
each child comes; where text and attributes are. Names are made of syllables; about one in four elements below the root
takes a name that all schemas use (`title`, `date`, …), as unrelated schemas do.

Every element but the root has one parent that was drawn before it, so that a schema is a tree and every document ends;
with `shared` above 0 some elements stand under a second parent as well, which is drawn among those before the first.

Invariant: an element's content names only elements with higher numbers, so there are no cycles.
"""

from collections.abc import Iterator, Sequence
from random import Random

from pathcast.documents.schema.document_schema import Schema
from pathcast.documents.schema.dtd_reader import read_dtd
from pathcast.workloads import DocumentOptions
from pathcast.workloads.document_generator import DocumentGenerator
from pathcast.workloads.value_pools import TextStyle, Values

_COMMON = (
    "title",
    "name",
    "date",
    "author",
    "description",
    "price",
    "code",
    "status",
    "note",
    "type",
    "address",
    "city",
    "country",
    "phone",
    "size",
    "weight",
    "version",
    "language",
    "summary",
    "comment",
    "link",
    "source",
    "total",
)
_ONSETS = (
    "b",
    "br",
    "c",
    "d",
    "dr",
    "f",
    "g",
    "gr",
    "h",
    "k",
    "l",
    "m",
    "n",
    "p",
    "pl",
    "r",
    "s",
    "st",
    "t",
    "tr",
    "v",
)
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "ou")
_CODAS = ("", "", "n", "r", "s", "l", "t", "nd", "rk")
_OCCURRENCES, _WEIGHTS = ("", "?", "*", "+"), (0.45, 0.3, 0.15, 0.1)


def generate_schemas(count: int, *, seed: int = 0, shared: float = 0.1) -> list[Schema]:
    """`count` schemas of different shapes and roots, the same for the same seed."""
    if count < 0:
        raise ValueError(f"count must be at least 0, got {count}")
    return [generate_schema(seed=f"{seed}/{number}", shared=shared) for number in range(count)]


def generate_schema(
    *, seed: int | str = 0, elements: tuple[int, int] = (20, 60), levels: tuple[int, int] = (4, 7), shared: float = 0.1
) -> Schema:
    """One schema; its numbers of elements and levels are drawn from the given ranges."""
    return read_dtd(schema_text(seed=seed, elements=elements, levels=levels, shared=shared).encode())


def schema_text(
    *, seed: int | str = 0, elements: tuple[int, int] = (20, 60), levels: tuple[int, int] = (4, 7), shared: float = 0.1
) -> str:
    """The DTD of one schema, root first."""
    for name, (low, high) in (("elements", elements), ("levels", levels)):
        if not 2 <= low <= high:
            raise ValueError(f"{name} must be two ascending numbers of at least 2, got {(low, high)}")
    if not 0 <= shared <= 1:
        raise ValueError(f"shared must be from 0 to 1, got {shared}")
    random = Random(f"pathcast/schema/{seed}")
    names = _names(random, random.randint(*elements))
    children = _tree(random, len(names), random.randint(*levels), shared)
    lines = []
    for number, name in enumerate(names):
        lines.append(f"<!ELEMENT {name} {_content(random, [names[child] for child in children[number]])}>")
        lines += [f"<!ATTLIST {name} {attribute}>" for attribute in _attributes(random, number == 0)]
    return "\n".join(lines) + "\n"


def _names(random: Random, count: int) -> list[str]:
    """Different names, the first (the root's) never a common one."""
    names: dict[str, None] = {}
    while len(names) < count:
        common = names and random.random() < 0.25
        names[random.choice(_COMMON) if common else _word(random)] = None
    return list(names)


def _word(random: Random) -> str:
    syllables = random.choice((2, 2, 3))
    return "".join(random.choice(_ONSETS) + random.choice(_VOWELS) for _ in range(syllables)) + random.choice(_CODAS)


def _tree(random: Random, count: int, levels: int, shared: float) -> list[list[int]]:
    """The children of each element. Chains down to the last level first, so that every schema has its depth."""
    level = [1]
    children: list[list[int]] = [[] for _ in range(count)]
    for number in range(1, count):
        inner = [other for other in range(number) if level[other] < levels]
        # Some parents draw more children than others: the last ones, which are deep, and those near the root.
        parent = number - 1 if number < levels else random.choice(inner[: max(2, len(inner) // 2)] + inner[-3:])
        children[parent].append(number)
        level.append(level[parent] + 1)
        if random.random() < shared and parent > 1:
            children[random.randrange(1, parent)].append(number)
    return [list(dict.fromkeys(those)) for those in children]


def _content(random: Random, children: Sequence[str]) -> str:
    if not children:
        return "EMPTY" if random.random() < 0.15 else "(#PCDATA)"
    if random.random() < 0.05:
        return "(#PCDATA | " + " | ".join(children) + ")*"
    parts: list[str] = []
    waiting = list(children)
    while waiting:
        several = min(len(waiting), random.choice((1, 1, 1, 2, 3)))
        group, waiting = waiting[:several], waiting[several:]
        inside = group[0] if several == 1 else "(" + " | ".join(group) + ")"
        parts.append(inside + random.choices(_OCCURRENCES, _WEIGHTS)[0])
    return "(" + ", ".join(parts) + ")"


def _attributes(random: Random, is_root: bool) -> Iterator[str]:
    for name in random.sample(("id", "kind", "lang", "unit", "ref", "rank"), random.choice((0, 0, 0, 1, 1, 2))):
        kind = "(small | medium | large)" if name in ("kind", "unit") else "CDATA"
        yield f"{name} {kind} {'#REQUIRED' if is_root or random.random() < 0.5 else '#IMPLIED'}"


def mixed_documents(
    schemas: Sequence[Schema],
    count: int,
    *,
    seed: int = 0,
    start: int = 0,
    max_levels: int = 6,
    max_repeats: int = 3,
    largest: int = 20,
    text: TextStyle = "integers",
) -> Iterator[bytes]:
    """`count` documents, numbered from `start`, each of a schema drawn by its number and the seed."""
    options = DocumentOptions(max_levels=max_levels, max_repeats=max_repeats)
    generators = [
        DocumentGenerator(schema, Values(schema, seed=seed, largest=largest, text=text), options, seed=seed)
        for schema in schemas
    ]
    if not generators:
        raise ValueError("schemas must not be empty; give at least one")
    for number in range(start, start + count):
        yield Random(f"pathcast/mixed/{seed}/{number}").choice(generators).document(number)
