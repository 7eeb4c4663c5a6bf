"""Messages by target: each target gets exactly its documents, and nothing of any other document."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from pathcast.roxsum import MessageLimits, RoXSum
from pathcast.roxsum.message.message_format import unpack
from pathcast.roxsum.message.messages_by_target import divided, encode_by_target, partition
from pathcast.roxsum.message.segment_format import unpacked_blocks
from tests.roxsum.drawn import collections, data_of, often

# The documents of each target, as numbers; those that the batch lacks are left out.
shares = st.lists(st.sets(st.integers(0, 11)), min_size=1, max_size=6)


def found_of(shares: list[set[int]], count: int) -> dict[int, BitMap]:
    return {target: BitMap(number for number in numbers if number < count) for target, numbers in enumerate(shares)}


def plain_atoms(shares: list[set[int]], count: int) -> dict[tuple[int, ...], list[int]]:
    """The definition: documents by the targets that have them."""
    atoms: dict[tuple[int, ...], list[int]] = {}
    for number in range(count):
        if having := tuple(target for target, numbers in enumerate(shares) if number in numbers):
            atoms.setdefault(having, []).append(number)
    return atoms


def content(message: bytes) -> bytes:
    """Everything that a message says, unpacked."""
    _, segments = unpack(memoryview(message), MessageLimits())
    return b"".join(unpacked_blocks(counts, segment) for counts, segment in segments)


def segments_of(message: bytes) -> int:
    return len(unpack(memoryview(message), MessageLimits())[1])


@often
@given(shares, st.integers(0, 12))
def test_an_atom_is_the_documents_with_the_same_targets(shares: list[set[int]], count: int) -> None:
    members = [np.array(sorted(n for n in numbers if n < count), dtype=np.int64) for numbers in shares]
    found = partition(count, members)
    assert {tuple(atom.targets): atom.places.tolist() for atom in found} == plain_atoms(shares, count)
    assert len(found) == len(plain_atoms(shares, count))


@often
@given(shares, st.integers(0, 12), st.sampled_from([1, 3, 8, 100]))
def test_atoms_are_divided_without_loss(shares: list[set[int]], count: int, saved: int) -> None:
    atoms = partition(count, [np.array(sorted(n for n in s if n < count), dtype=np.int64) for s in shares])
    shared, own = divided(atoms, saved)
    for target, numbers in enumerate(shares):
        mine = [number for atom in shared if target in atom.targets for number in atom.places.tolist()]
        mine += own[target].tolist() if target in own else []
        assert sorted(mine) == sorted(number for number in numbers if number < count)
    assert all(len(atom.targets) > 1 for atom in shared)
    small = [atom for atom in atoms if len(atom.targets) > 1 and atom.saved < saved]
    fewer = len(small) < len({target for atom in small for target in atom.targets})
    assert [atom.saved >= saved or fewer for atom in shared] == [True] * len(shared)


@pytest.mark.slow
@often
@given(collections, shares, st.sampled_from([1, 100]))
def test_each_target_gets_exactly_its_documents(
    documents: list[bytes | str], shares: list[set[int]], saved: int
) -> None:
    batch = RoXSum.build(documents)
    found = found_of(shares, len(documents))
    messages = encode_by_target(batch, found, level=1, saved=saved)
    assert messages.keys() == {target for target, ids in found.items() if ids}
    for target, message in messages.items():
        expected = batch.restrict(found[target])
        for trusted in (False, True):
            part = RoXSum.decode(message, trusted=trusted)
            assert part.ids.tolist() == list(found[target])
            assert part.documents() == [data_of(documents[id]) for id in found[target]]
            assert part.summary() == expected.summary()
            assert part.next_id == batch.next_id
            assert RoXSum.decode_documents(message, trusted=trusted) == part.documents()


@pytest.mark.slow
@often
@given(collections, shares, st.sampled_from([1, 100]))
def test_messages_merged_are_the_batch_of_all_that_was_sent(
    documents: list[bytes | str], shares: list[set[int]], saved: int
) -> None:
    batch = RoXSum.build(documents)
    messages = encode_by_target(batch, found_of(shares, len(documents)), level=1, saved=saved)
    everything = sorted({number for numbers in shares for number in numbers if number < len(documents)})
    merged = RoXSum.merge(RoXSum.decode(message, trusted=True) for message in messages.values())
    assert list(merged) == everything
    assert merged.documents() == [data_of(documents[number]) for number in everything]
    assert merged.summary() == batch.restrict(everything).summary()


@often
@given(shares, st.sampled_from([1, 100]))
def test_a_message_says_nothing_of_other_targets_documents(shares: list[set[int]], saved: int) -> None:
    """Each document has names, markup and values of its own; a message has those of its documents alone."""
    words = [f"w{chr(97 + number) * 3}w" for number in range(12)]
    documents = [
        f"<t><{word}e {word}a='{word}v'>{word}x</{word}e><!--{word}c--><?{word}p d?></t>".encode() for word in words
    ]
    documents[11] = b"<?xml version='1.0' encoding='ISO-8859-1'?>" + documents[11]  # sent raw
    found = found_of(shares, len(documents))
    for target, message in encode_by_target(RoXSum.build(documents), found, level=1, saved=saved).items():
        said = content(message)
        for number, word in enumerate(words):
            assert (word.encode() in said) == (number in found[target])


def test_documents_with_the_same_targets_are_one_segment_in_several_messages() -> None:
    batch = RoXSum.build([f"<a><b>{number}</b></a>" for number in range(40)])
    both, west = BitMap(range(30)), BitMap(range(40))
    messages = encode_by_target(batch, {"east": both, "west": west}, level=1, saved=30)
    assert (segments_of(messages["east"]), segments_of(messages["west"])) == (1, 2)
    ((_, shared),) = unpack(memoryview(messages["east"]), MessageLimits())[1]
    assert bytes(shared) in messages["west"]


def test_many_small_atoms_are_encoded_with_the_other_documents_of_their_targets() -> None:
    batch = RoXSum.build([f"<a><b>{number}</b></a>" for number in range(30)])
    found = {target: BitMap(number for number in range(30) if number >> target & 1) for target in range(5)}
    for saved, several in ((1, True), (100, False)):
        messages = encode_by_target(batch, found, level=1, saved=saved)
        assert all((segments_of(message) > 1) == several for message in messages.values())


def test_a_batch_makes_one_message_for_each_target_that_gets_documents() -> None:
    batch = RoXSum.build(["<a/>", "<b/>", "<a><b/></a>"])
    messages = batch.messages({"east": ["//a"], "west": ["//b"], "nobody": ["/c"]})
    assert {target: RoXSum.decode(message).ids.tolist() for target, message in messages.items()} == {
        "east": [0, 2],
        "west": [1, 2],
    }
    with pytest.raises(ValueError, match="level must be a zstd compression level"):
        RoXSum.build(["<a/>"] * 2).messages({"east": ["//a"]}, level=99)
