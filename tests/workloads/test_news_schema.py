"""The news schema that comes with Pathcast."""

import re
from importlib.resources import files

import pytest
from lxml import etree

from pathcast.patterns import parse
from pathcast.workloads import generate_documents, news_dtd, news_schema


def test_it_is_as_rich_as_the_fields_schemas() -> None:
    schema = news_schema()
    assert len(schema) >= 120
    assert schema.attribute_count >= 500
    assert schema.recursive
    assert schema.roots == ("news",)
    assert schema.reachable("news") == set(schema.elements)
    assert sum(bool(attribute.choices) for element in schema for attribute in element.attributes) >= 100


def test_every_element_can_end() -> None:
    schema = news_schema()
    assert all(schema.height(name) is not None for name in schema.elements)


@pytest.mark.parametrize("name", ["section", "item", "cell", "emphasis", "subject"])
def test_sections_lists_tables_marked_text_and_subjects_nest(name: str) -> None:
    schema = news_schema()
    assert any(name in schema.reachable(child) for child in schema.children[name])


def test_it_refers_to_nothing_outside() -> None:
    assert not re.search(rb"SYSTEM|PUBLIC", news_dtd())


def test_the_paths_in_its_comments_and_in_the_readme_can_match() -> None:
    paths = re.findall(r"^      (/\S+)$", news_dtd().decode(), re.MULTILINE)
    assert len(paths) == 5
    documents = [etree.fromstring(document) for document in generate_documents(news_schema(), 300)]
    for path in paths:
        parse(path)
        structure = re.sub(r"\[.*?\]", "", path)
        assert any(document.xpath(structure) for document in documents), path


README = files("pathcast.workloads").joinpath("README.md")


def test_the_readme_counts_it_rightly() -> None:
    schema = news_schema()
    counts = f"{len(schema)} elements, {schema.attribute_count} attributes"
    assert counts in README.read_text(encoding="utf-8")


def test_the_readme_example_runs() -> None:
    readme = README.read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    scope: dict[str, object] = {}
    exec(code, scope)  # noqa: S102
    documents, subscriptions = scope["documents"], scope["subscriptions"]
    assert isinstance(documents, list)
    assert isinstance(subscriptions, list)
    assert len(documents) == 200
    assert len(set(subscriptions)) == 1_000
