"""A relayed annotation equals one made from the elements."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.documents import DocumentBatch, Names, read_batch
from pathcast.patterns import parse
from pathcast.routing.structure.structure_encoder import StructureCoder, StructureDecoder
from pathcast.routing.structure.structure_relay import StructureRelay
from pathcast.routing.table.needed_document_values import Needs
from tests.generators import random_document
from tests.routing.structures import annotation, arrival

SOME = Needs.of(map(parse, ["//b[@x = '5']", "//c[. = 'red']", "/a/text()"]))


def same(one: DocumentBatch, other: DocumentBatch) -> None:
    for column in ("parent", "depth", "end", "attribute_begin", "text_begin", "text_end", "text_parent"):
        assert np.array_equal(getattr(one, column), getattr(other, column)), column
    assert [one[0].name(k) for k in range(len(one[0]))] == [other[0].name(k) for k in range(len(other[0]))]
    for element in range(len(one[0])):
        assert one[0].attributes(element) == other[0].attributes(element)
        assert one[0].text_nodes(element) == other[0].text_nodes(element)


@pytest.mark.slow
@pytest.mark.parametrize("needs", [Needs(), SOME], ids=["nothing", "values"])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_what_is_passed_on_is_what_was_told(needs, seed):
    random = Random(seed)
    names = Names()
    first, second = StructureCoder(needs, epoch=1), StructureCoder(needs, epoch=2, paths=random.choice([30, 1 << 15]))
    middle, last = StructureDecoder(needs, names), StructureDecoder(needs, names)
    relay = StructureRelay(middle, second)
    for _ in range(10):
        batch = read_batch([random_document(random, size=15, odd=0.1).data], errors="return")
        if batch.errors:
            continue
        data = batch[0].data
        told = annotation(first, batch[0])
        passed = relay.pass_on(told, data)
        decoded = arrival(middle, told, data)
        if passed is None:  # the next dictionary is full
            passed = second.encode(decoded[0], leaves=False)
            if passed is None:
                continue
        if random.random() < 0.8:
            second.left()
        if random.random() < 0.1:
            last.forget()
        arrived = last.decode(passed, data)
        if isinstance(arrived, DocumentBatch):
            same(decoded, arrived)
        else:
            second.hear(arrived.encode())


def test_other_values_are_not_passed_on():
    document = b"<a><b x='5'/></a>"
    told = annotation(StructureCoder(SOME), read_batch([document])[0])
    middle = StructureDecoder(SOME, Names())
    other = SOME | Needs(values=frozenset(["b"]))
    assert StructureRelay(middle, StructureCoder(other)).pass_on(told, document) is None
    bare = StructureRelay(middle, StructureCoder(Needs())).pass_on(told, document)
    assert bare is not None
    arrived = arrival(StructureDecoder(Needs(), Names()), bare, document)
    assert arrived[0].path(1) == "/a/b" and not arrived[0].attributes(1)
    assert StructureRelay(middle, StructureCoder(SOME)).pass_on(told[:-1], document) is None
