"""Schemas by chance: finite, of many shapes, and the same for the same seed; and our auction schema."""

from typing import Any

import pytest
from lxml import etree

from pathcast.documents import read_batch
from pathcast.workloads import auction_schema, generate_documents
from pathcast_lab.workloads import generate_schema, generate_schemas, mixed_documents
from pathcast_lab.workloads.random_schemas import schema_text


def test_the_same_seed_gives_the_same_schemas_and_another_gives_others() -> None:
    assert generate_schemas(5, seed=3) == generate_schemas(5, seed=3)
    assert generate_schemas(2, seed=3) == generate_schemas(5, seed=3)[:2]
    assert generate_schemas(5, seed=3) != generate_schemas(5, seed=4)


def test_schemas_differ_in_root_size_and_depth() -> None:
    schemas = generate_schemas(22)
    assert len({schema.root for schema in schemas}) == 22
    assert len({len(schema) for schema in schemas}) > 8
    assert all(20 <= len(schema) <= 60 and not schema.recursive for schema in schemas)
    common = {"title", "name", "date", "price", "author"}
    assert sum(bool(common & schema.elements.keys()) for schema in schemas) > 10


@pytest.mark.parametrize("seed", range(12))
def test_every_element_can_be_reached_and_every_document_is_valid(seed: int) -> None:
    schema = generate_schema(seed=seed, shared=0.4)
    assert schema.reachable(schema.root) == set(schema.elements)
    assert all(schema.height(name) is not None for name in schema.elements)
    dtd = etree.DTD(__import__("io").StringIO(schema_text(seed=seed, shared=0.4)))
    for document in generate_documents(schema, 10, seed=seed):
        assert dtd.validate(etree.fromstring(document)), dtd.error_log


def test_sizes_and_levels_are_kept() -> None:
    schema = generate_schema(seed=1, elements=(8, 8), levels=(3, 3), shared=0)
    assert len(schema) == 8
    deepest = max(read_batch(list(generate_documents(schema, 50))).depth)
    assert deepest <= 3


@pytest.mark.parametrize(
    "settings", [{"elements": (5, 4)}, {"levels": (1, 3)}, {"shared": 2.0}], ids=["elements", "levels", "shared"]
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        generate_schema(**settings)


def test_mixed_documents_come_from_all_schemas_and_can_be_made_in_parts() -> None:
    schemas = generate_schemas(4)
    documents = list(mixed_documents(schemas, 60, seed=2))
    assert {etree.fromstring(document).tag for document in documents} == {schema.root for schema in schemas}
    assert documents[40:] == list(mixed_documents(schemas, 20, seed=2, start=40))
    with pytest.raises(ValueError, match="schemas must not be empty"):
        next(mixed_documents([], 1))


def test_the_auction_schema_has_the_shape_of_a_market() -> None:
    schema = auction_schema()
    assert schema.root == "market" and not schema.recursive
    assert schema.children["market"] == ("regions", "people", "openings", "closings", "categories")
    assert len(schema.children["regions"]) == 6
    sizes = [len(document) for document in generate_documents(schema, 100)]
    assert 300 < sum(sizes) / 100 < 1500
