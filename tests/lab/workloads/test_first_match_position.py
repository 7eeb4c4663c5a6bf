"""The treebank and bibliography schemas, documents of a size, and where in a document its first match comes."""

import re
from importlib.resources import files
from io import StringIO

import numpy as np
import pytest
from lxml import etree

import pathcast
from pathcast.documents import read_batch
from pathcast.patterns import parse
from pathcast.workloads import bibliography_schema, generate_documents, news_schema, protein_schema, treebank_schema
from pathcast_lab.workloads import documents_of_size, joined_document, steered_documents, steered_subscriptions

SCHEMAS = {"treebank": treebank_schema(), "bibliography": bibliography_schema()}
both = pytest.mark.parametrize(("name", "schema"), SCHEMAS.items())


def text_of(name: str) -> str:
    return files("pathcast.workloads").joinpath(f"{name}.dtd").read_text(encoding="utf-8")


@both
def test_all_of_a_schema_can_be_reached_and_ends(name, schema):
    assert schema.reachable(schema.roots[0]) == set(schema.elements)
    assert all(schema.height(element) is not None for element in schema.elements)


@both
def test_the_readme_counts_it_rightly(name, schema):
    readme = files("pathcast.workloads").joinpath("README.md").read_text(encoding="utf-8")
    assert re.search(rf"`{name}.dtd` \|.* {len(schema)} elements, {schema.attribute_count or 'no'} attributes", readme)


@both
def test_the_paths_in_its_comments_can_match(name, schema):
    paths = re.findall(r"^      (/\S+)$", text_of(name), re.MULTILINE)
    assert len(paths) == 5
    documents = [etree.fromstring(document) for document in generate_documents(schema, 200)]
    for path in paths:
        parse(path)
        assert any(document.xpath(path) for document in documents), path


@both
def test_its_documents_are_valid(name, schema):
    dtd = etree.DTD(StringIO(text_of(name)))
    for document in generate_documents(schema, 30, seed=2):
        assert dtd.validate(etree.fromstring(document)), dtd.error_log


def test_parse_trees_nest_and_bibliographies_are_flat():
    assert treebank_schema().recursive and not bibliography_schema().recursive
    assert read_batch(list(generate_documents(bibliography_schema(), 100))).depth.max() == 5


@pytest.mark.parametrize("elements", [50, 129, 200])
def test_documents_have_about_the_size_that_was_asked_for(elements):
    documents = documents_of_size(news_schema(), 10, elements, seed=1)
    sizes = np.diff(read_batch(documents).offsets)
    assert len(documents) == 10 and abs(sizes.mean() - elements) < elements / 15
    assert documents == documents_of_size(news_schema(), 10, elements, seed=1)


@pytest.mark.parametrize(
    ("subscription", "steered"),
    [
        ("/a/b[c]/d", "/a[.//test]/b[c]/d"),
        ("/a[x]/b", "/a[.//test][x]/b"),
        ("/a//b", "/a[.//test]//b"),
        ("//b/c", "/*[.//test]//b/c"),
        ("b", "/*[.//test]//b"),
        ("/a", "/a[.//test]"),
    ],
)
def test_subscriptions_ask_for_the_test_element_at_the_root(subscription, steered):
    assert list(steered_subscriptions([subscription])) == [steered]


@pytest.mark.parametrize("fraction", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_nothing_matches_before_the_test_element(fraction):
    documents = list(generate_documents(news_schema(), 20, seed=4))
    (subscription,) = steered_subscriptions(["//*"])
    subscriptions = pathcast.Subscriptions()
    subscriptions.add(subscription)
    matcher = subscriptions.compile()
    for document, before in zip(steered_documents(documents, fraction), documents, strict=True):
        read = read_batch([document])[0]
        place = next(element for element in range(len(read)) if read.name(element) == "test")
        assert place == pytest.approx(fraction * len(read), abs=2)
        assert document.replace(b"<test/>", b"") == before
        assert matcher.match(document) and not matcher.match(before)


def test_a_root_without_content_gets_it():
    assert list(steered_documents([b"<a/>", b"<a x='>'  />", b"<a></a>\n"], 1.0)) == [
        b"<a><test/></a>",
        b"<a x='>'><test/></a>",
        b"<a><test/></a>\n",
    ]


def test_many_documents_become_one():
    documents = list(generate_documents(protein_schema(), 30, seed=1, text="words"))
    one = joined_document(documents)
    sizes = np.diff(read_batch(documents).offsets)
    assert len(read_batch([one]).name) == sizes.sum() - len(documents) + 1
    with pytest.raises(ValueError, match="documents must not be empty"):
        joined_document([])


def test_a_fraction_is_a_fraction():
    with pytest.raises(ValueError, match="fraction must be from 0 to 1"):
        list(steered_documents([b"<a/>"], 1.5))
