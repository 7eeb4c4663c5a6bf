"""The fast path from an annotation gives the matches of the document, and rejects what cannot be decoded."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pathcast
from pathcast.documents import read_batch
from pathcast.matching.engine_contract import PathMatching
from pathcast.patterns import Namespaces
from pathcast.routing.structure.structure_encoder import Refused, StructureCoder, StructureDecoder
from pathcast.routing.structure.structure_matcher import StructureMatcher
from pathcast.routing.table.needed_document_values import Needs
from pathcast.workloads import generate_documents, generate_subscriptions, news_schema
from tests import oracle
from tests.generators import NAMESPACES, expression, random_document, random_pattern, varied
from tests.routing.structures import annotation


def link_of(matcher, **bounds):
    engine = matcher.engine
    coder, decoder = StructureCoder(Needs(), epoch=3, **bounds), StructureDecoder(Needs(), engine.table.names)
    return coder, StructureMatcher(decoder, engine)


def test_news_match_as_they_do_when_they_are_read():
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many([*generate_subscriptions(news_schema(), 500, seed=1), "/", "//*", "/news"])
    matcher = subscriptions.compile()
    coder, quick = link_of(matcher)
    assert StructureMatcher.takes(matcher.engine)
    for document in generate_documents(news_schema(), 30, seed=1):
        batch = read_batch([document])
        expected = matcher.engine.match_batch(batch)[1]
        assert sorted(quick.match(coder.encode(batch[0]), document)) == sorted(expected)
        assert sorted(quick.match(coder.encode(batch[0]), document)) == sorted(expected)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9))
def test_random_paths_match_as_they_do_when_the_document_is_read(seed):
    random = Random(seed)
    names = ("a", "b", "c", "d", "e", "*")
    subscriptions = pathcast.Subscriptions(namespaces=random.choice([None, "ignore"]))

    def path() -> str:
        return "".join(random.choice(("/", "//")) + random.choice(names) for _ in range(random.randint(1, 4)))

    subscriptions.add_many([path() for _ in range(30)])
    matcher = subscriptions.compile()
    coder, quick = link_of(matcher, paths=random.choice([20, 1 << 15]))
    for _ in range(8):
        batch = read_batch([random_document(random, size=20, odd=0.1).data], errors="return")
        if batch.errors:
            continue
        if random.random() < 0.2:
            subscriptions.add(path())
            matcher.match(b"<a/>")
        message = coder.encode(batch[0])
        if message is None:
            continue
        found = quick.match(message, batch[0].data)
        assert sorted(found) == sorted(matcher.engine.match_batch(batch)[1])


def test_what_the_decoder_refuses_is_refused_here():
    subscriptions = pathcast.Subscriptions()
    subscriptions.add("//b")
    coder, quick = link_of(subscriptions.compile())
    document = b"<a><b/></a>"
    message = coder.encode(read_batch([document])[0])
    for damaged in (message[:-1], b"", message[:20] + b"\xff" + message[21:]):
        assert isinstance(quick.match(damaged, document), Refused)
    assert quick.match(message, document).tolist() == [0]
    quick.decoder.forget()
    refusal = quick.match(coder.encode(read_batch([document])[0]), document)
    assert isinstance(refusal, Refused) and refusal.resend
    coder.hear(refusal.encode())
    assert quick.match(coder.encode(read_batch([document])[0]), document).tolist() == [0]


def test_engines_that_match_from_label_paths_are_taken():
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(["//b", "/a[b]/c"])
    assert StructureMatcher.takes(subscriptions.compile().engine)
    assert not StructureMatcher.takes(subscriptions.compile(engine="reference").engine)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**9))
def test_random_trees_match_as_they_do_when_the_document_is_read(seed):
    random = Random(seed)

    def tree(steps: int, branches: float) -> str:
        text = ""
        for _ in range(random.randint(1, steps)):
            text += random.choice(("/", "/", "//")) + random.choice("aabbcd*")
            while random.random() < branches:
                text += f"[{random.choice(('', './/'))}{tree(2, branches / 2).lstrip('/')}]"
        return text

    def document(depth: int) -> str:
        name = random.choice("aabbcde")
        inside = "".join(document(depth - 1) for _ in range(random.randint(0, 3))) if depth else ""
        return f"<{name}>{inside}</{name}>"

    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many([tree(3, 0.5) for _ in range(25)])
    matcher = subscriptions.compile()
    coder, quick = link_of(matcher)
    for number in range(8):
        if number == 2:
            subscriptions.add(tree(3, 0.5))
            matcher.match(b"<a/>")
        batch = read_batch([document(4).encode()])
        found = quick.match(coder.encode(batch[0]), batch[0].data)
        assert sorted(found) == sorted(matcher.engine.match_batch(batch)[1])


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.sampled_from([0, 2, 64]), st.integers(0, 10**9))
def test_random_patterns_match_with_their_values(few, seed):
    random = Random(seed)
    base = random_document(random, size=15)
    documents = [each for each in (varied(random, base) for _ in range(6)) if not each.prolog]
    assume(documents)
    root = oracle.read(documents[0].data).getroot()
    choices: list[Namespaces] = [NAMESPACES, "ignore"]
    subscriptions = pathcast.Subscriptions(namespaces=random.choice(choices))
    texts = [expression(random_pattern(random, root), random) for _ in range(20)]
    subscriptions.add_many(texts, errors="collect")
    matcher = subscriptions.compile()
    table = matcher.engine.table
    needs = Needs.of_table(table)
    coder, decoder = StructureCoder(needs, epoch=3), StructureDecoder(needs, table.names)
    quick = StructureMatcher(decoder, matcher.engine, few=few)
    for each in documents:
        batch = read_batch([each.data], errors="return")
        if batch.errors:
            continue
        found = quick.match(annotation(coder, batch[0]), batch[0].data)
        assert isinstance(found, np.ndarray), found
        assert sorted(found) == sorted(matcher.engine.match_batch(batch)[1])


@pytest.mark.parametrize("namespaces", [None, "ignore"])
def test_label_paths_are_matched_without_a_document(namespaces):
    subscriptions = pathcast.Subscriptions(namespaces=namespaces)
    subscriptions.add_many(["/a", "//b", "/a/*", "/", "//a//a", "/a[b]/c"])
    engine = subscriptions.compile().engine
    assert isinstance(engine, PathMatching)
    offsets, entries = engine.match_paths([("a",), ("a", "b"), ("a", "x", "a"), (), ("x",), ("{u}a",)])
    found = [entries[begin:end].tolist() for begin, end in pairwise(offsets)]
    always = found[3]
    texts = [{engine.table.text(entry) for entry in each} for each in found]
    assert texts[0] == {"/a"} and texts[1] == {"//b", "/a/*"} and texts[2] == {"//a//a"} and texts[4] == set()
    assert {engine.table.text(entry) for entry in always} <= {"/"}
    assert texts[5] == ({"/a"} if namespaces == "ignore" else set())
    assert engine.match_paths([])[0].tolist() == [0]
