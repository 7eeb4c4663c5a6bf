"""The protein and astronomy schemas: flat ones besides the news schema, as in the evaluations of the literature."""

import re
from importlib.resources import files

import pytest
from lxml import etree

from pathcast.documents.schema.document_schema import Schema
from pathcast.patterns import parse
from pathcast.workloads import (
    SubscriptionOptions,
    astronomy_schema,
    generate_documents,
    generate_subscriptions,
    protein_schema,
)

SCHEMAS = {"protein": protein_schema(), "astronomy": astronomy_schema()}
README = files("pathcast.workloads").joinpath("README.md").read_text(encoding="utf-8")
both = pytest.mark.parametrize(("name", "schema"), SCHEMAS.items())


def text_of(name: str) -> str:
    return files("pathcast.workloads").joinpath(f"{name}.dtd").read_text(encoding="utf-8")


@both
def test_all_of_it_can_be_reached_and_ends(name: str, schema: Schema) -> None:
    assert len(schema.roots) == 1
    assert schema.reachable(schema.roots[0]) == set(schema.elements)
    assert all(schema.height(element) is not None for element in schema.elements)
    assert not re.search(r"SYSTEM|PUBLIC", text_of(name))


@both
def test_the_readme_counts_it_rightly(name: str, schema: Schema) -> None:
    assert f"{len(schema)} elements, {schema.attribute_count} attributes" in README


@both
def test_the_paths_in_its_comments_can_match(name: str, schema: Schema) -> None:
    paths = re.findall(r"^      (/\S+)$", text_of(name), re.MULTILINE)
    assert len(paths) == 5
    documents = [etree.fromstring(document) for document in generate_documents(schema, 200)]
    for path in paths:
        parse(path)
        structure = re.sub(r"\[.*?\]", "", path)
        assert any(document.xpath(structure) for document in documents), path


def deepest(schema: Schema, name: str, above: int = 0) -> int:
    return max((deepest(schema, child, above + 1) for child in schema.children[name]), default=above + 1)


def test_proteins_are_flat() -> None:
    schema = protein_schema()
    assert not schema.recursive
    assert deepest(schema, schema.roots[0]) == 8


def test_proteins_have_few_distinct_paths_but_as_many_as_the_paper_asks_for() -> None:
    assert len(set(generate_subscriptions(protein_schema(), 4_000, SubscriptionOptions(distinct=True)))) == 4_000


def test_astronomy_nests_in_its_text_alone() -> None:
    schema = astronomy_schema()
    nesting = {
        name for name in schema.elements if any(name in schema.reachable(child) for child in schema.children[name])
    }
    assert nesting == {"paragraph", "remark", "enumeration", "entry"}
