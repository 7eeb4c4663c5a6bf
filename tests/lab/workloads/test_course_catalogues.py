"""Catalogues of many publishers: heterogeneous in every way, and what derives mappings finds out nearly all of it."""

from collections import Counter

from pathcast.documents import read
from pathcast.mediation import Mapping, Mediator, SchemaTree, correspond
from pathcast.mediation.schemas import nodes_of
from pathcast_lab.workloads.course_catalogues import GLOBAL, Catalogue, generate_catalogues

CATALOGUES = generate_catalogues(40)


def operators_at(mapping: Mapping) -> dict[str, set[object]]:
    found: dict[str, set[object]] = {}
    for operator in mapping.operators:
        found.setdefault(operator.node, set()).add(operator)
    return found


def found_by_likeness(catalogue: Catalogue) -> Mapping:
    pairs = {pair.local: pair.glob for pair in correspond(catalogue.schema, GLOBAL)}
    return Mapping.derive(catalogue.name, catalogue.schema, GLOBAL, pairs)


def test_the_mix_of_operators_is_near_the_paper_s() -> None:
    counts = Counter(operator.kind for catalogue in CATALOGUES for operator in catalogue.mapping.operators)
    wanted = {"rename": 89, "insert": 31, "to-element": 17, "upgrade": 6, "downgrade": 3, "exchange": 2}
    assert counts.keys() == wanted.keys()
    assert all(abs(counts[kind] - number) <= max(3, number / 5) for kind, number in wanted.items()), counts
    assert not any(catalogue.mapping.unexplained for catalogue in CATALOGUES)


def test_the_same_seed_gives_the_same_catalogues_and_another_one_others() -> None:
    assert [each.schema for each in generate_catalogues(5)] == [each.schema for each in CATALOGUES[:5]]
    assert generate_catalogues(5, seed=1)[0].schema != CATALOGUES[0].schema
    assert len({str(each.schema) for each in CATALOGUES}) >= 38


def test_documents_have_the_size_that_was_asked_for_and_the_schema() -> None:
    for catalogue in CATALOGUES[:10]:
        for size in (10_000, 40_000):
            document = catalogue.document(size)
            assert size <= len(document) <= size + 10_000
        sample = read(catalogue.document(10_000, seed=3))
        paths = {sample.path(element)[1:] for element in range(len(sample))}
        assert paths <= catalogue.schema.paths.keys()


def test_rewritten_documents_are_of_the_global_schema_but_for_what_no_operator_explains() -> None:
    for catalogue in CATALOGUES:
        mediator = Mediator(GLOBAL)
        mediator.add(catalogue.mapping)
        document = read(mediator.rewrite(catalogue.document(10_000), catalogue.name))
        paths = {document.path(element)[1:] for element in range(len(document))}
        unknown = {path.rpartition("/")[2] for path in paths - GLOBAL.paths.keys()}
        assert unknown <= {"first", "last", "location"}


def test_nine_of_ten_nodes_get_their_operators_without_a_hand() -> None:
    right = total = 0
    for catalogue in CATALOGUES:
        truth, found = operators_at(catalogue.mapping), operators_at(found_by_likeness(catalogue))
        for path in nodes_of(catalogue.schema):
            total += 1
            right += truth.get(path) == found.get(path)
    assert right / total >= 0.9


def test_nearly_all_nodes_find_their_partners() -> None:
    right = total = 0
    for catalogue in CATALOGUES:
        found = found_by_likeness(catalogue).correspondence
        for path in nodes_of(catalogue.schema):
            total += 1
            right += found.get(path) == catalogue.truth.get(path)
    assert right / total >= 0.95


def test_a_pair_that_is_known_is_taken_as_it_is() -> None:
    catalogue = CATALOGUES[3]
    known = {"university/department/label": "university/department/phone"}
    found = {pair.local: pair for pair in correspond(catalogue.schema, GLOBAL, known=known)}
    assert (found["university/department/label"].glob, found["university/department/label"].confidence) == (
        "university/department/phone", 1.0
    )  # fmt: skip
    assert len({pair.glob for pair in found.values()}) == len(found)


def test_a_schema_corresponds_to_itself() -> None:
    for tree in (GLOBAL, *(catalogue.schema for catalogue in CATALOGUES[:5])):
        assert isinstance(tree, SchemaTree)
        assert {pair.local: pair.glob for pair in correspond(tree, tree)} == {path: path for path in nodes_of(tree)}
