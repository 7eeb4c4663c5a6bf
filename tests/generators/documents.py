"""Random documents, kept as trees so that a failing one can be made smaller.

The vocabulary is small on purpose: names repeat, also below themselves, so that patterns with branches and recursion
have something to get wrong. Everything that XML has between two tags occurs: mixed content, CDATA, comments,
processing instructions, character references, numbers in odd formats, namespaces bound, rebound and undone; in some
documents also entities, attribute defaults and other encodings.

Left out, because the oracle is wrong there (`test_oracle.py`): an empty CDATA section with no text beside it (XPath 1.0
has no text node there, libxml2 makes an empty one), and elements inside an entity in a document with namespaces
(libxml2 does not see the declarations around the reference).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

NAMES = ("a", "b", "c", "d", "e")
ODD_NAMES = ("and", "text", "x-1", "é")
ATTRIBUTES = ("x", "y", "z", "or")
NAMESPACES = {"p": "urn:one", "q": "urn:two"}
PREFIXES = ("", "p", "q", "r")
WORDS = ("red", "green", "red green", "blue", "Red", "", " ", "é", "名前", "😀", "a'b", 'a"b', "<b>&", "x\ny", "5 5")
SPACES = (" ", "\t", "\n", "\r", "  ", " \n\t ")
COMMON = ("5", "5.0", "red", "10", "green", "4")
NUMBERS = (
    "5", " 5 ", "5.0", "5.", "05", "+5", "-5", "5e0", "0.5e1", "50e-1", "5e", "5e+", "10", "1e1", "1E1", "10.0",
    "0", "-0", ".5", "-.5", "0.5", "0.1", "0.10000000000000000000001", "0.30000000000000004", "1e400", "-1e400",
    "1e-400", "NaN", "Infinity", "0x5", "٥", "\u00a05", "\t5\n", "5 ", "- 5", "5,0", "5_0", "e5", ".", "-", "", "--5",
    "4", "6", "7.25", "9007199254740993", "123456789012345678901234567890", "0.1234567890123456789012345",
    "1.7976931348623157e308",
)  # fmt: skip

ENTITIES_OF_TEXT = ("word", "number", "empty")
ENTITIES = (*ENTITIES_OF_TEXT, "markup", "split")
DOCTYPE = """<!DOCTYPE a [
<!ENTITY word "red"><!ENTITY number " 5"><!ENTITY empty ""><!ENTITY markup "<b x='5'>&word;</b>4">
<!ENTITY split "5<!-- c -->5"><!ATTLIST b y CDATA "5" z NMTOKENS #IMPLIED>
]>"""
_DEEPEST = 7


@dataclass(frozen=True)
class Element:
    """An element as it is written; a `str` among its content is markup as it stands."""

    tag: str
    attributes: tuple[tuple[str, str], ...] = ()
    content: tuple["Content", ...] = ()

    def __str__(self) -> str:
        attributes = "".join(f' {name}="{value}"' for name, value in self.attributes)
        inside = "".join(map(str, self.content))
        return f"<{self.tag}{attributes}>{inside}</{self.tag}>" if inside else f"<{self.tag}{attributes}/>"


Content: TypeAlias = Element | str


@dataclass(frozen=True)
class Document:
    """A document: what stands before the root, the root, and an encoding (UTF-8 if empty)."""

    root: Element
    prolog: str = ""
    encoding: str = ""

    @property
    def data(self) -> bytes:
        declaration = f"<?xml version='1.0' encoding='{self.encoding}'?>" if self.encoding else ""
        return f"{declaration}{self.prolog}{self.root}".encode(self.encoding or "utf-8")


def random_document(random: Random, *, size: int = 30, odd: float = 0.3) -> Document:
    """A document of up to `size` elements, `odd` of its values odd numbers; every other document uses namespaces."""
    writer = _Writer(random, size, odd, namespaced=random.random() < 0.5, entities=random.random() < 0.2)
    root = writer.element({"": "", "xml": "xml"}, depth=1)
    return Document(root, DOCTYPE if writer.entities else "", "utf-16" if random.random() < 0.1 else "")


def random_value(random: Random, odd: float = 0.3) -> str:
    """A string that may occur as the value of anything."""
    if random.random() < odd:
        return random.choice(NUMBERS) if random.random() < 0.5 else random_number(random)
    form = random.random()
    return random.choice(COMMON if form < 0.7 else WORDS if form < 0.95 else SPACES)


def random_number(random: Random) -> str:
    """A number in an odd format, or what is nearly one: signs, points, exponents, digits and spaces of all kinds."""
    digits = "".join(random.choices("0123456789", k=random.choice((1, 1, 2, 3, 16, 17, 20, 25, 40))))
    whole = random.choice(("", "0", "5", "5", "10", "00", "1" * 310, digits))
    fraction = random.choice(("", "", "", ".", ".0", ".5", "." + digits, ".000" + digits, "." + "0" * 330 + "5"))
    exponent = random.choice(("",) * 6 + ("e0", "e1", "E-1", "e+2", "e", "E", "e-", "e 1", "e1.5", "e300", "e-330"))
    sign = random.choice(("", "", "", "-", "-", "+", "--", "- ", "\u2212"))
    begin, end = (random.choice(("",) * 6 + (*SPACES, "\u00a0", "\u2003", "x")) for _ in range(2))
    number = f"{begin}{sign}{whole}{fraction}{exponent}{end}"
    return number.translate(random.choice(_OTHER_DIGITS)) if random.random() < 0.04 else number


_OTHER_DIGITS = tuple(
    str.maketrans("0123456789", "".join(chr(zero + digit) for digit in range(10))) for zero in (0x660, 0x966, 0xFF10)
)


def varied(random: Random, document: Document) -> Document:
    """The same document with a few changes: other names and values, parts left out, doubled or unwrapped."""
    return replace(document, root=_varied(random, document.root))


def _varied(random: Random, element: Element) -> Element:
    content: list[Content] = []
    for item in element.content:
        form = random.random()
        if isinstance(item, str):
            content += [] if form < 0.08 else [random.choice(COMMON)] if form < 0.14 else [item]
        elif form > 0.06:
            content += [_varied(random, item) for _ in range(2 if form < 0.1 else 1)]
        elif form > 0.03:
            content += [inner for inner in item.content if not _declares(item)]
    attributes = []
    for name, value in element.attributes:
        form = 1.0 if name.startswith("xmlns") else random.random()
        if form > 0.05:
            attributes.append((name, random.choice(COMMON) if form < 0.12 else value))
    prefix, colon, local = element.tag.rpartition(":")
    return Element(
        prefix + colon + (random.choice(NAMES) if random.random() < 0.05 else local), tuple(attributes), tuple(content)
    )


def _declares(element: Element) -> bool:
    return any(name.startswith("xmlns") for name, _ in element.attributes)


class _Writer:
    def __init__(self, random: Random, size: int, odd: float, *, namespaced: bool, entities: bool) -> None:
        self.random = random
        self.odd = odd
        self.left = random.randint(1, size)
        self.namespaced = namespaced
        self.entities = entities

    def element(self, scope: Mapping[str, str], depth: int) -> Element:
        random = self.random
        self.left -= 1
        declared = self.declarations() if self.namespaced and random.random() < 0.25 else {}
        scope = {**scope, **declared}
        names = ODD_NAMES if random.random() < 0.06 else NAMES
        tag = self.qualified(random.choice(names[: random.randint(2, 5)]), scope, elements=True)
        written = [("xmlns" + (prefix and f":{prefix}"), uri) for prefix, uri in declared.items()]
        written += self.attributes(scope)
        random.shuffle(written)
        return Element(tag, tuple(written), tuple(self.content(scope, depth)))

    def declarations(self) -> dict[str, str]:
        """New bindings: any prefix to any namespace, the default one also to none."""
        random = self.random
        chosen = random.sample(PREFIXES, random.randint(1, 2))
        uris = tuple(NAMESPACES.values())
        return {prefix: random.choice(uris if prefix else (*uris, "")) for prefix in chosen}

    def qualified(self, local: str, scope: Mapping[str, str], *, elements: bool) -> str:
        usable = [prefix for prefix in scope if prefix and prefix != "xml"]
        if usable and self.random.random() < (0.4 if elements else 0.3):
            return f"{self.random.choice(usable)}:{local}"
        return local

    def attributes(self, scope: Mapping[str, str]) -> list[tuple[str, str]]:
        """Attributes with different expanded names (two prefixes may stand for one namespace)."""
        random = self.random
        found: dict[tuple[str, str], tuple[str, str]] = {}
        for _ in range(random.choice((0, 0, 0, 1, 1, 2, 3))):
            name = (
                "xml:lang"
                if random.random() < 0.05
                else self.qualified(random.choice(ATTRIBUTES), scope, elements=False)
            )
            prefix, _, local = name.rpartition(":")
            found[scope[prefix] if prefix else "", local] = name, self.attribute_value(random_value(random, self.odd))
        return list(found.values())

    def attribute_value(self, value: str) -> str:
        if self.entities and self.random.random() < 0.2:
            return f"&{self.random.choice(ENTITIES_OF_TEXT)};"
        return "".join(self.character(character, '<&"') for character in value)

    def content(self, scope: Mapping[str, str], depth: int) -> list[Content]:
        random = self.random
        found: list[Content] = []
        children = random.choice((0, 1, 1, 2, 2, 3, 4)) if depth < _DEEPEST else 0
        for _ in range(children + 1):
            if random.random() < 0.35:
                found += self.text(random_value(random, self.odd))
            if self.entities and random.random() < 0.15:
                found.append(f"&{random.choice(ENTITIES_OF_TEXT if self.namespaced else ENTITIES)};")
            if random.random() < 0.06:
                found.append(random.choice(("<!-- red -->", "<!--5-->", "<?a red?>", "<?b?>")))
            if children > 0 and self.left > 0:
                children -= 1
                found.append(self.element(scope, depth + 1))
        return found

    def text(self, value: str) -> list[Content]:
        """The value as text: plain, in CDATA, or cut into pieces of either kind, sometimes by a comment."""
        random = self.random
        form = random.random()
        if form < 0.6 or len(value) < 2:
            return [self.escaped(value)] if value else []
        if form < 0.75:
            return [f"<![CDATA[{value}]]>"]
        cut = random.randint(1, len(value) - 1)
        between = random.choice(("", "", "<!-- 5 -->", "<?p 5?>"))
        pieces = (self.escaped(value[:cut]), between, f"<![CDATA[{value[cut:]}]]>")
        return [piece for piece in pieces if piece]

    def escaped(self, value: str) -> str:
        return "".join(self.character(character, "<&>") for character in value)

    def character(self, character: str, special: str) -> str:
        """One character: as it is where that is allowed, sometimes as a reference."""
        if character in special:
            return {"<": "&lt;", "&": "&amp;", ">": "&gt;", '"': "&quot;"}[character]
        form = self.random.random()
        if form < 0.04:
            return f"&#{ord(character)};"
        return f"&#x{ord(character):X};" if form < 0.08 else character
