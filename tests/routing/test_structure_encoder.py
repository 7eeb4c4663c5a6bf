"""On a decoded structure annotation, every engine returns the same results as on the parsed document."""

from functools import cache
from itertools import groupby, pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pathcast
from pathcast.documents import DocumentBatch, Limits, read_batch
from pathcast.matching import engines
from pathcast.matching.engine_registry import engine_class
from pathcast.routing.structure.structure_encoder import Refused, StructureCoder, StructureDecoder
from pathcast.routing.table.needed_document_values import Needs
from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema
from tests import oracle
from tests.corpus import cases
from tests.generators import NAMESPACES, expression, random_document, random_pattern
from tests.routing.structures import annotation, arrival


def subscriptions_of(patterns, namespaces=None) -> pathcast.Subscriptions:
    subscriptions = pathcast.Subscriptions(namespaces=namespaces)
    subscriptions.add_many(patterns)
    return subscriptions


@cache
def engine_of(*patterns):
    """The default engine over these patterns, made once for all examples of a test."""
    return subscriptions_of(patterns).compile().engine


class Link:
    """A link between a router that has read a document and one that has patterns."""

    def __init__(self, table, needs=None, **bounds) -> None:
        self.table = table
        self.needs = Needs.of_table(table) if needs is None else needs
        self.coder = StructureCoder(self.needs, epoch=7, **bounds)
        self.decoder = StructureDecoder(self.needs, table.names)

    def over(self, batch: DocumentBatch) -> DocumentBatch:
        """A batch of one decoded document; it must not be rejected."""
        return arrival(self.decoder, annotation(self.coder, batch[0]), batch[0].data)


def assert_same_tree(one: DocumentBatch, other: DocumentBatch) -> None:
    for column in ("parent", "depth", "end", "offsets"):
        assert np.array_equal(getattr(one, column), getattr(other, column)), column
    names = [[batch.name_of(number) for number in batch.name.tolist()] for batch in (one, other)]
    assert names[0] == names[1]


def answers(engine, batch: DocumentBatch):
    """The entries of each document, which come in no particular order.

    Without opaque patterns: a router that has any parses the document.
    """
    offsets, entries = engine.match_batch(batch)
    opaque = set() if engine.table.opaque is None else set(engine.table.opaque.entries)
    found = [entries[begin:end].tolist() for begin, end in pairwise(offsets)]
    return [sorted(entry for entry in each if entry not in opaque) for each in found]


@cache
def cases_by_namespaces():
    """The corpus: namespaces, the subscriptions and the documents, as one batch; read once for all engines."""
    found = []
    for namespaces, group in groupby(sorted(cases(), key=lambda case: str(case.namespaces)), lambda c: c.namespaces):
        listed = list(group)
        documents = [case.document for case in listed if len(case.document) < 1_000]
        subscriptions = subscriptions_of([case.pattern for case in listed], namespaces)
        found.append((namespaces, subscriptions, read_batch(documents, errors="return")))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("engine", engines())
def test_every_case_has_its_answer_without_the_document_being_parsed(engine):
    wrong = []
    for namespaces, subscriptions, batch in cases_by_namespaces():
        made = subscriptions.compile(engine=engine).engine
        link = Link(made.table)
        messages = [link.coder.encode(document) or b"" for document in batch]
        arrived, refused = link.decoder.decode_many(messages, [document.data for document in batch])
        assert refused.keys() == batch.errors.keys()
        assert_same_tree(batch, arrived)
        wrong += [namespaces] if answers(made, batch) != answers(made, arrived) else []
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_patterns_match_what_arrives_as_what_was_read(seed):
    random = Random(seed)
    namespaces = random.choice([NAMESPACES, "ignore"])
    documents = [random_document(random).data for _ in range(6)]
    trees = [oracle.read(document) for document in documents]
    patterns = [expression(random_pattern(random, random.choice(trees).getroot())) for _ in range(60)]
    readable = [
        batch
        for document in documents
        if not (batch := read_batch([document], errors="return", entities="expand")).errors
    ]
    subscriptions = subscriptions_of(patterns, namespaces)
    for name in engines():
        made = subscriptions.compile(engine=name).engine
        first, second = Link(made.table), Link(made.table)
        for batch in readable:
            arrived = first.over(batch)
            assert answers(made, arrived) == answers(made, batch), name
            further = second.over(arrived)  # the decoded annotation suffices to send it on
            assert_same_tree(batch, further)
            assert answers(made, further) == answers(made, batch), name


def test_several_documents_arrive_as_one_batch():
    documents = list(generate_documents(news_schema(), 20, seed=3))
    subscriptions = subscriptions_of(
        list(generate_subscriptions(news_schema(), 300, SubscriptionOptions(predicates=1), seed=3))
    )
    made = subscriptions.compile().engine
    link = Link(made.table)
    batch = read_batch(documents, names=made.table.names)
    messages = [annotation(link.coder, document) for document in batch]
    whole, refused = link.decoder.decode_many(messages, [document.data for document in batch])
    assert refused == {}
    assert_same_tree(batch, whole)
    assert answers(made, whole) == answers(made, batch)
    messages[3] = messages[3][:-1]
    messages[5] = b""
    some, refused = link.decoder.decode_many(messages, [document.data for document in batch])
    assert sorted(refused) == [3, 5] == sorted(some.errors)
    for number, document in enumerate(batch):
        expected = [] if number in refused else answers(made, document.alone())[0]
        assert answers(made, some[number].alone())[0] == expected


def test_an_epoch_may_end_within_a_batch():
    made = subscriptions_of(["/a/b", "//c", "//d"]).compile().engine
    link = Link(made.table, paths=3)
    documents = [b"<a><b/><b/></a>", b"<a><c/></a>", b"<d><a/></d>", b"<a><b/></a>"]
    batch = read_batch(documents)
    messages = [annotation(link.coder, document) for document in batch]
    assert link.coder.restarts == 2
    whole, refused = link.decoder.decode_many(messages, documents)
    assert refused == {}
    assert_same_tree(batch, whole)
    assert answers(made, whole) == answers(made, batch)


def test_names_that_come_to_the_table_later_are_met():
    subscriptions = subscriptions_of(["/a/b"])
    matcher = subscriptions.compile()
    link = Link(matcher.engine.table)
    batch = read_batch([b"<a><b/><late/></a>"])
    assert len(answers(matcher.engine, link.over(batch))[0]) == 1
    subscriptions.add("//late")
    matcher.match(b"<a/>")
    assert len(answers(matcher.engine, link.over(batch))[0]) == 2


# Loss.


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9))
def test_a_message_is_refused_or_right_whatever_is_lost(seed):
    random = Random(seed)
    made = engine_of("/a[b]/c", "//b[@x = '5']", "//d//e", "//c[contains(., 'red')]")
    link = Link(made.table, paths=random.choice([12, 1 << 15]))
    waiting: list[tuple[bytes, DocumentBatch]] = []
    refusals = 0
    for _ in range(40):
        batch = read_batch([random_document(random, size=12, odd=0.1).data], errors="return")
        if not batch.errors and (message := link.coder.encode(batch[0])) is not None:
            waiting.append((message, batch))
        fate = random.random()
        if fate < 0.1:
            link.decoder.forget()
        elif fate < 0.15:
            link.coder = StructureCoder(link.needs, epoch=random.choice([7, random.randrange(100)]))
        elif fate < 0.25 and waiting:
            waiting.pop(random.randrange(len(waiting)))
        elif fate < 0.35 and waiting:
            waiting.append(random.choice(waiting))
        elif fate < 0.9 and waiting:
            message, batch = waiting.pop(random.randrange(len(waiting)) if random.random() < 0.3 else 0)
            arrived = link.decoder.decode(message, batch[0].data)
            if isinstance(arrived, Refused):
                refusals += 1
                if random.random() < 0.7:
                    link.coder.hear(arrived.encode())
            else:
                assert_same_tree(batch, arrived)
                assert answers(made, arrived) == answers(made, batch)
    link.coder.hear(b"nonsense")
    batch = read_batch([b"<a><b/><c/></a>"])
    assert answers(made, link.over(batch)) == answers(made, batch)


def test_a_receiver_that_forgot_is_understood_again_after_one_refusal():
    made = subscriptions_of(["/a/b"]).compile().engine
    link = Link(made.table)
    batch = read_batch([b"<a><b/></a>"])
    link.over(batch)
    link.decoder.forget()
    refusal = link.decoder.decode(annotation(link.coder, batch[0]), b"<a><b/></a>")
    assert isinstance(refusal, Refused) and refusal.resend
    assert refusal.reason == (
        "the structure annotation cannot be used: this router has not received its label paths; the document must be "
        "parsed"
    )
    link.coder.hear(refusal.encode())
    link.over(batch)
    assert len(annotation(link.coder, batch[0])) < 60


def test_a_sender_that_forgot_begins_a_dictionary_that_is_taken_up():
    made = subscriptions_of(["/a/b", "//c"]).compile().engine
    link = Link(made.table)
    link.over(read_batch([b"<a><b/></a>"]))
    link.coder = StructureCoder(link.needs)
    batch = read_batch([b"<a><c/></a>"])
    assert answers(made, link.over(batch)) == answers(made, batch)
    link.coder = StructureCoder(link.needs, epoch=link.coder._sent.epoch)  # the same random number by chance
    link.over(read_batch([b"<c><a/></c>"]))
    link.coder._told = 1  # as if only the rest had to be sent: this belongs to another dictionary
    other = StructureCoder(link.needs, epoch=link.coder._sent.epoch)
    link.decoder.decode(annotation(other, batch[0]), b"<a><c/></a>")
    refusal = link.decoder.decode(annotation(link.coder, read_batch([b"<c><b/></c>"])[0]), b"<c><b/></c>")
    assert (
        isinstance(refusal, Refused)
        and "differ from the label paths of earlier messages" in refusal.reason
        and refusal.resend
    )
    link.coder.hear(refusal.encode())
    link.over(read_batch([b"<c><a/></c>"]))


def test_other_needs_and_another_document_are_refused():
    made = subscriptions_of(["/a/b[@x = '1']"]).compile().engine
    link = Link(made.table)
    batch = read_batch([b'<a><b x="1"/></a>'])
    message = annotation(link.coder, batch[0])
    later = StructureDecoder(link.needs | Needs(texts=frozenset(["b"])), made.table.names)
    for decoder, document, why in [
        (later, batch[0].data, "another version of this router's subscriptions"),
        (link.decoder, b"<a/>", "made for a document of"),
    ]:
        refusal = decoder.decode(message, document)
        assert isinstance(refusal, Refused) and why in refusal.reason


# Bounds.


def test_a_dictionary_is_bounded_and_begins_anew():
    made = subscriptions_of(["//x1", "//x900"]).compile().engine
    link = Link(made.table, paths=50, names=20)
    for number in range(100):
        batch = read_batch([f"<a><x{number}/><x{number + 1}/></a>".encode()])
        assert answers(made, link.over(batch)) == answers(made, batch)
        assert link.coder.known <= 50 and link.decoder.known <= 50
    assert link.coder.restarts >= 4
    wide = read_batch([b"<a>" + b"".join(b"<x%d/>" % number for number in range(60)) + b"</a>"])
    assert link.coder.encode(wide[0]) is None
    link.over(batch)


def test_a_document_that_could_not_be_read_has_no_annotation():
    assert StructureCoder(Needs()).encode(read_batch([b"<a>"], errors="return")[0]) is None


def test_an_annotation_is_small_beside_its_document():
    documents = list(generate_documents(news_schema(), 100, seed=5, text="words"))
    paths = subscriptions_of(list(generate_subscriptions(news_schema(), 500, seed=5)))
    link = Link(paths.compile().engine.table)
    batch = read_batch(documents)
    for document in batch:
        link.coder.encode(document)
    share = sum(len(annotation(link.coder, document)) for document in batch) / len(batch.data)
    assert share < 0.035


# Hostile bytes.


def sealed(message: bytearray) -> bytes:
    """A message whose checksum is right whatever its bytes."""
    from zlib import crc32

    from pathcast.routing.structure.structure_annotation_frame import HEADER

    message[HEADER - 4 : HEADER] = crc32(message[HEADER:], crc32(message[: HEADER - 4])).to_bytes(4, "little")
    return bytes(message)


def assert_sound(batch: DocumentBatch) -> None:
    """For any message, the arrays form a tree, and values lie within the bytes."""
    count = len(batch.name)
    index = np.arange(count)
    assert np.all(batch.parent < index) and np.all(batch.parent[1:] >= 0) and batch.parent[0] == -1
    assert np.all(batch.end > index) and np.all(batch.end <= count) and batch.end[0] == count
    assert np.all(batch.depth[1:] == batch.depth[batch.parent[1:]] + 1)
    assert np.all(np.diff(batch.attribute_begin) >= 0) and batch.attribute_begin[-1] == len(batch.attribute_name)
    assert np.all(batch.name >= 0) and np.all(batch.name < batch.name_count)
    assert np.all(batch.text_begin <= batch.text_end) and np.all(batch.text_end <= len(batch.text_parent))
    for start, length in [
        (batch.attribute_start, batch.attribute_length),
        (batch.text_start, batch.text_length),
    ]:
        room = np.where(start >= 0, len(batch.data) - start, len(batch.arena) - (-1 - start))
        assert np.all(length >= 0) and np.all(length <= room)
    for text, parent in enumerate(batch.text_parent.tolist()):
        assert batch.text_begin[parent] <= text < batch.text_end[parent]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9))
def test_hostile_bytes_are_refused_or_harmless(seed):
    random = Random(seed)
    patterns = ["/a[b]/c", "//b[@x = '5']", "//a[. = '5']", "//c[text() = 'red']", "//*[contains(@y, 'e')]"]
    made = engine_of(*patterns)
    link = Link(made.table)
    batch = read_batch([random_document(random, size=15).data], errors="return")
    if batch.errors:
        return
    if random.random() < 0.5:
        link.over(batch)
    message = bytearray(annotation(link.coder, batch[0]))
    for _ in range(random.choice([0, 1, 1, 2, 5])):
        message[random.randrange(len(message))] = random.choice([0, 1, 127, 128, 255, random.randrange(256)])
    if random.random() < 0.2:
        del message[random.randrange(len(message)) :]
    elif random.random() < 0.1:
        message += bytes(random.randrange(256) for _ in range(3))
    data = sealed(message) if random.random() < 0.9 and len(message) >= 49 else bytes(message)
    arrived = link.decoder.decode(data, batch[0].data)
    if isinstance(arrived, DocumentBatch):
        assert_sound(arrived)
        made.match_batch(arrived)
    link.coder.hear(b"")
    link.over(batch)


@pytest.mark.parametrize("at", range(0, 44, 4))
def test_huge_figures_cost_nothing(at):
    link = Link(engine_of("/a/b").table)
    document = b"<a><b/></a>"
    message = bytearray(annotation(link.coder, read_batch([document])[0]))
    message[at + 1 : at + 5] = b"\xff\xff\xff\x7f"
    assert isinstance(link.decoder.decode(sealed(message), document), Refused)


def test_elements_nested_too_deep_are_refused():
    document = b"<a>" * 30 + b"</a>" * 30
    made = subscriptions_of(["//a"]).compile().engine
    coder = StructureCoder(Needs())
    message = annotation(coder, read_batch([document])[0])
    assert isinstance(
        StructureDecoder(Needs(), made.table.names, Limits(depth=30)).decode(message, document), DocumentBatch
    )
    refusal = StructureDecoder(Needs(), made.table.names, Limits(depth=29)).decode(message, document)
    assert isinstance(refusal, Refused) and "more than 29 names" in refusal.reason


def test_every_engine_is_asked():
    assert {engine_class(name).name for name in engines()} >= {"automaton", "reference"}
