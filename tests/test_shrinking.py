"""Examples are shrunk as long as they fail, and no further."""

from random import Random

from tests.generators import expression, random_document, random_pattern, shrunk
from tests.generators.documents import Document, Element
from tests.oracle import read


def test_a_document_keeps_only_what_it_fails_for() -> None:
    inner = Element("c", (("x", "1"), ("y", "2")), ("text", "<!-- c -->", Element("d")))
    document = Document(Element("a", (), (Element("b", (), (inner, "tail")),)), prolog="<!-- p -->", encoding="utf-16")
    smallest = shrunk(document, lambda each: 'y="2"' in str(each.root))
    assert smallest == Document(Element("", (("y", "2"),)))


def test_a_pattern_keeps_only_what_it_fails_for() -> None:
    random = Random(5)
    sample = read(random_document(random).data).getroot()
    patterns = (random_pattern(random, sample) for _ in range(10_000))
    pattern = next(each for each in patterns if "contains(" in expression(each) and len(each.steps) > 2)
    smallest = shrunk(pattern, lambda each: "contains(" in expression(each))
    assert expression(smallest) in {"contains(,)", "[contains(,)]"}


def test_what_cannot_be_smaller_stays() -> None:
    document = Document(Element("a"))
    assert shrunk(document, lambda each: False) is document
