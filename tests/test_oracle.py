"""Where the oracle is not followed: libxml2's answers differ from XPath 1.0, and ours are XPath's."""

from typing import NamedTuple

import pytest

from pathcast import Subscriptions
from pathcast.matching import engines
from tests import oracle


class Oddity(NamedTuple):
    document: bytes
    right: str
    """Matches by XPath 1.0, but not in libxml2."""
    wrong: str
    """Does not match by XPath 1.0, but does in libxml2."""


ODDITIES = {
    "an empty CDATA section is a text node": Oddity(b"<a><![CDATA[]]></a>", "/a[not(text())]", "/a/text()"),
    "elements inside an entity have no default namespace": Oddity(
        b"<!DOCTYPE a [<!ENTITY e '<b/>'>]><a xmlns='urn:f'>&e;</a>", "/Q{urn:f}a/Q{urn:f}b", "/Q{urn:f}a/b"
    ),
    "the value of the document includes declarations of entities": Oddity(
        b"<!DOCTYPE a [<!ENTITY e 'red'><!ENTITY unused 'blue'>]><a>x&e;</a>",
        "/*[/ = 'xred']",
        "/*[starts-with(/, 'redx')]",
    ),
}


@pytest.mark.parametrize("engine", engines())
@pytest.mark.parametrize("name", ODDITIES)
def test_answers_are_those_of_xpath_where_libxml2_is_odd(name: str, engine: str) -> None:
    oddity = ODDITIES[name]
    subscriptions = Subscriptions()
    subscriptions.add_many([oddity.right, oddity.wrong])
    assert subscriptions.compile(engine, entities="expand").match(oddity.document).ids.tolist() == [1]


@pytest.mark.parametrize("name", ODDITIES)
def test_libxml2_is_odd(name: str) -> None:
    document, *expressions = ODDITIES[name]
    declared = [expression.replace("Q{urn:f}", "f:") for expression in expressions]
    assert [oracle.matches(one, document, {"f": "urn:f"}) for one in declared] == [False, True]


def test_libxml2_puts_the_text_of_referenced_entities_before_that_of_the_document() -> None:
    tree = oracle.read(ODDITIES["the value of the document includes declarations of entities"].document)
    assert (tree.xpath("string(/)"), tree.xpath("string(/*)")) == ("redxred", "xred")
