"""The matches of a feed against a list of pairs, while subscriptions change and patterns match as sets."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast import Subscriptions
from pathcast.broker.deliveries.delivery_index import Batch
from pathcast.broker.feed_index import FeedIndex
from pathcast.broker_log import LoggedDocuments
from pathcast.matching import Tuning

# Sets of two patterns, as soon as the matcher can find them.
SOON = Tuning(fewest_marked=0, shared_entries=2, fewest_pending_bits=1, most_pending_bits=1)
PATTERNS = [
    *("/a", "/*", "//a", "//*", "/a/b", "//a/b", "//b", "//a//c", "//c", "//d"),
    *("//a[@x = '1']", "//a[b]/c"),
]
DOCUMENTS = [b"<a><b/></a>", b"<a><b/><c/></a>", b"<a x='1'><a><b/></a></a>", b"<d><a><c/></a></d>", b"<d/>", b"<a>"]


def matching() -> dict[str, set[int]]:
    """By pattern, the places of the documents that match it, as the plainest engine says."""
    subscriptions = Subscriptions()
    subscriptions.add_many(PATTERNS)
    found = subscriptions.compile(engine="reference").match_many(DOCUMENTS, errors="return")
    of = [set() if isinstance(each, Exception) else set(each.ids.tolist()) for each in found]
    return {pattern: {at for at, ids in enumerate(of) if id in ids} for id, pattern in enumerate(PATTERNS, 1)}


MATCHING = matching()
# What happens: patterns are added or removed, documents are published (some are left out), or trimmed.
CHANGES = st.tuples(st.just("change"), st.sets(st.integers(0, len(PATTERNS) - 1), min_size=1, max_size=6))
BATCHES = st.tuples(
    st.just("publish"),
    st.lists(st.tuples(st.integers(0, len(DOCUMENTS) - 1), st.booleans()), min_size=1, max_size=6),
)
TRIMS = st.tuples(st.just("trim"), st.integers(0, 40))


def texts(places: set[int]) -> list[str]:
    return [PATTERNS[place] for place in sorted(places)]


def check(index: FeedIndex, expected: dict[str, list[int]], first: int, head: int, limit: int) -> None:
    """The index finds what the list has from the first document on that is not trimmed."""
    wanted = np.arange(first, head + 2, dtype=np.int64)
    for text, sequences in expected.items():
        number = index.pattern(text)
        assert number is not None
        for position in (first - 1, (first + head) // 2, head):
            later = [each for each in sequences if each > position]
            assert index.after(number.number, position, limit) == later[:limit]
            latest = index.matches.matched_after(position)
            assert latest is None or number.number in latest or not later
        assert index.among(number.number, wanted.tolist()) == [each for each in sequences if each >= first]


@settings(max_examples=200)
@given(
    begin=st.sets(st.integers(0, len(PATTERNS) - 1), min_size=3),
    steps=st.lists(CHANGES | BATCHES | TRIMS, min_size=4, max_size=30),
    limit=st.integers(0, 3),
)
def test_a_feed_finds_what_a_list_of_all_pairs_holds(
    begin: set[int], steps: list[tuple[str, object]], limit: int
) -> None:
    index = FeedIndex(tuning=SOON)
    index.add(texts(begin), 0)
    for _ in range(4):  # then the matcher has groups
        index.match(index.read(DOCUMENTS[:2]))
    expected: dict[str, list[int]] = {text: [] for text in texts(begin)}
    sequence, first = 0, 1
    for kind, what in steps:
        if kind == "change":
            assert isinstance(what, set)
            for text in texts(what):
                if text in expected:
                    index.remove(text)
                    del expected[text]
                else:
                    index.add([text], sequence + 1)
                    expected[text] = []
        elif kind == "publish":
            assert isinstance(what, list)
            found = index.match(index.read([DOCUMENTS[place] for place, _ in what]))
            sequences = [0] * len(what)
            for at, (place, kept) in enumerate(what):
                sequence += 1
                if kept:
                    sequences[at] = sequence
                    for text in expected:
                        expected[text] += [sequence] * (place in MATCHING[text])
            if any(sequences):
                index.matches.append(found.at(sequences))
        else:
            assert isinstance(what, int)
            first = max(first, min(sequence, what))
            index.drop_before(first)
    check(index, expected, first, sequence, limit)


def published(index: FeedIndex, rounds: int, documents: list[bytes]) -> list[Batch]:
    """Publish the same documents repeatedly, with sequences from 1 on; what was appended."""
    batches = []
    for number in range(rounds):
        begin = 1 + number * len(documents)
        batch = index.match(index.read(documents)).at(range(begin, begin + len(documents)))
        index.matches.append(batch)
        batches.append(batch)
    return batches


def test_patterns_that_match_together_take_the_memory_of_one() -> None:
    index = FeedIndex()
    names = [f"n{number}" for number in range(13)]
    paths = ["".join(step) for step in product(*[[f"/{name}", f"//{name}"] for name in names])][:8_000]
    index.add(paths, 0)
    document = "".join(f"<{name}>" for name in names) + "".join(f"</{name}>" for name in reversed(names))
    published(index, 3, [document.encode()])  # the matcher writes each match until it has grouped them
    before = index.matches.bytes
    batches = published(index, 20, [document.encode()] * 64)
    assert [batch.counts.tolist() for batch in batches] == [[8_000] * 64] * 20
    assert sum(len(batch.patterns) for batch in batches) == 0
    assert index.matches.bytes - before < 20 * 8_000
    number = index.pattern(paths[77])
    assert number is not None
    assert index.after(number.number, 5, 10_000) == list(range(6, 1 + 20 * 64))
    assert set(batches[-1].occurring.tolist()) == set(range(1, 8_001))


def test_a_set_lives_as_long_as_its_documents() -> None:
    index = FeedIndex(tuning=SOON)
    index.add(["/a", "//a", "/a/b", "//b"], 0)
    published(index, 40, [b"<a><b/></a>"])
    for pattern in ("//a", "/a", "/a/b"):
        index.remove(pattern)
        index.add([pattern], 1_000)
        published(index, 1, [b"<a><b/></a>"])
    made = len(index.matches.sets)
    assert made >= 4
    index.drop_before(41)
    assert len(index.matches.sets) == 0
    (batch,) = published(index, 1, [b"<a><b/></a>"])
    assert batch.counts.tolist() == [4] and len(index.matches.sets) == 2


def test_new_groups_have_sets_of_their_own() -> None:
    index = FeedIndex(tuning=SOON)
    index.add(PATTERNS, 0)
    order = [*[0] * 5, *[1] * 9, *[2] * 9, *[3] * 9, 0, 1, 2, 3]  # documents with further label paths come later
    for sequence, place in enumerate(order, 1):
        index.matches.append(index.match(index.read([DOCUMENTS[place]])).at([sequence]))
    expected = {text: [at for at, place in enumerate(order, 1) if place in MATCHING[text]] for text in PATTERNS}
    check(index, expected, 1, len(order), 100)


def test_documents_of_the_log_are_matched_again_with_sets() -> None:
    index = FeedIndex(tuning=SOON)
    index.add(PATTERNS, 0)
    bodies = DOCUMENTS[:5]
    for begin in range(1, 41, 5):
        index.earlier.append(index.match_again(LoggedDocuments(list(range(begin, begin + 5)), bodies, {})))
    assert len(index.earlier.sets)
    for text in PATTERNS:
        number = index.pattern(text)
        assert number is not None
        assert index.after(number.number, 0, 100) == [each for each in range(1, 41) if (each - 1) % 5 in MATCHING[text]]


def test_an_index_answers_for_earlier_documents_as_far_as_it_was_rebuilt() -> None:
    index = FeedIndex()
    index.add(["//a"], None)  # there when the process started
    index.begin_at(10)
    assert [index.indexed_to("//a", 1, 20), index.indexed_to("//a", 10, 20)] == [1, 20]
    index.earlier_to = 8
    # Document 9 is not matched yet, neither by the rebuilding nor live.
    assert [index.indexed_to("//a", begin, 20) for begin in (1, 9, 10)] == [9, 9, 20]
    assert [index.indexed_to("//a", 1, end) for end in (8, 9, 10)] == [8, 9, 9]
    index.earlier_to = 9
    assert index.indexed_to("//a", 1, 20) == 20
    index.add(["//b"], 15)
    assert [index.indexed_to("//b", begin, 20) for begin in (1, 14, 15)] == [1, 14, 20]
    assert index.indexed_to("//c", 3, 20) == 3
