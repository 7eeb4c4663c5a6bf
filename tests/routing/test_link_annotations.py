"""Annotations of batches: headers, deliveries and savings are those of routers that process document by document."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.documents import DocumentBatch, Reader
from pathcast.matching import Engine
from pathcast.routing import BulkRouting, Headers, MessageHeaders, Overlay, Policy, ReadBatch
from pathcast.routing.annotations import data_pattern_occurrences
from pathcast.routing.snapshot.stored_overlay import StoredOverlay, save_overlay
from tests.routing.drawn import world_of

POLICIES = [f"L{positive}{negative}" for positive in ("", "+s", "+d", "+sd") for negative in ("", "-s", "-d", "-sd")]
seeds = st.integers(0, 1 << 20)
Visit = tuple[int, str, bytes, tuple[str, ...], int]
"""A document at a router: its header, the subscribers, and the patterns that need no matching."""


def read(overlay: StoredOverlay, documents: list[bytes]) -> DocumentBatch:
    names = overlay.router(overlay.source).table.patterns.names
    return Reader(names, overlay.limits, "refuse").scanner.read(documents, encodings={})


def one_by_one(bulk: BulkRouting, batch: DocumentBatch) -> list[Visit]:
    """All visits, router by router and document by document."""
    good = np.setdiff1d(np.arange(len(batch)), list(batch.errors)).astype(np.int64)
    waiting, found, whole = [bulk.first(good, text=False)], [], ReadBatch(batch)
    for messages in waiting:  # which grows during the loop
        handled = bulk.handle(messages, whole, text=False)
        assert not handled.errors
        offsets = handled.offsets
        for place, document in enumerate(messages.documents.tolist()):
            who = (handled.names[number] for number in handled.subscribers[offsets[place] : offsets[place + 1]])
            skipped = int(handled.skipped[place])
            found.append((document, messages.router, messages.header(place), tuple(sorted(who)), skipped))
        waiting += handled.sent
    return sorted(found)


def together(bulk: BulkRouting, batch: DocumentBatch) -> list[Visit]:
    """All visits, by one match of each document."""
    made = bulk.visits(batch, links=True, text=False)
    assert made is not None
    visits, messages = made
    assert not visits.errors
    found = []
    for place in range(len(visits.documents)):
        who = [visits.names[number] for number in visits.subscribers[visits.offsets[place] : visits.offsets[place + 1]]]
        header = header_of(messages, int(messages.number[place]))
        router = visits.order[visits.routers[place]]
        found.append((int(visits.documents[place]), router, header, tuple(sorted(who)), int(messages.skipped[place])))
    return sorted(found)


def header_of(messages: MessageHeaders, number: int) -> bytes:
    headers = messages.headers
    if isinstance(headers, Headers):
        return headers.data[headers.offsets[number] : headers.offsets[number + 1]].tobytes()
    return headers[number]


def stored(overlay: Overlay, folder: str, at: str | None = None) -> StoredOverlay:
    save_overlay(overlay, Path(folder) / "overlay", at=at, engines=["automaton"], whole=True)
    return StoredOverlay(Path(folder) / "overlay")


@pytest.mark.slow
@settings(max_examples=60)
@given(seeds)
def test_a_batch_has_the_headers_of_its_documents_one_by_one(seed: int) -> None:
    world, random = world_of(seed), Random(seed)
    overlay = world.overlay
    if (keep := random.choice((None, 1.0, 0.5, 0.1))) is not None:
        overlay.advertise(keep)
    for first, second in random.sample(overlay.topology.ends.tolist(), k=len(overlay.topology.ends) // 4):
        overlay.distrust(overlay.topology.nodes[first], overlay.topology.nodes[second])
    with TemporaryDirectory() as folder:
        opened = stored(overlay, folder, random.choice(overlay.routers))
        documents = random.choices([*world.documents, b"<broken"], k=12)
        for policy in random.sample(POLICIES, 4):
            bulk = BulkRouting(opened, Policy.read(policy), "automaton")
            assert together(bulk, read(opened, documents)) == one_by_one(bulk, read(opened, documents))


def sectors() -> Overlay:
    """A tree in which annotations decide a lot: patterns of the leaves repeat on the way to them."""
    overlay = Overlay.tree(levels=3, fanout=2)
    for number, router in enumerate(overlay.routers):
        xpaths = [f"/r/{name}[.//{below}]" for name in "abc"[: 1 + number % 3] for below in "xyz"]
        xpaths += [f"//{name}/*/x" for name in "abc"] + ["/r//x", "/r/a[@k = '1']"]
        xpaths += [f"/r/{one}/{two}/{three}" for one in "abc" for two in "xyz" for three in "ab"]
        overlay.subscribe_many(router, xpaths, [f"{router}-{place % 4}" for place in range(len(xpaths))])
    overlay.advertise(keep=0.5)
    return overlay


def documents_of(random: Random, count: int) -> list[bytes]:
    def element(depth: int) -> str:
        name = random.choice("abcxyz")
        inner = "".join(element(depth + 1) for _ in range(random.randrange(4))) if depth < 4 else ""
        return f"<{name} k='{random.randrange(3)}'>{inner}</{name}>"

    return [f"<r>{element(1)}{element(1)}</r>".encode() for _ in range(count)]


@pytest.mark.parametrize("policy", POLICIES)
def test_headers_of_every_policy(policy: str, tmp_path: Path) -> None:
    opened = stored(sectors(), str(tmp_path))
    bulk = BulkRouting(opened, Policy.read(policy), "automaton")
    documents = documents_of(Random(1), 40)
    visits = together(bulk, read(opened, documents))
    assert visits == one_by_one(bulk, read(opened, documents))
    assert any(len(header) > 1 for _, _, header, _, _ in visits) == (policy != "L")
    if "-s" in policy:  # annotations must save something, so that the test compares something
        assert any(skipped for *_, skipped in visits)


def test_a_document_is_matched_once_whatever_the_number_of_routers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = stored(sectors(), str(tmp_path))
    bulk = BulkRouting(opened, Policy.read("L+s-sd"), "automaton")
    engine = opened.whole.table.engine("automaton") if opened.whole else None
    assert engine is not None
    calls: list[Engine] = []
    match = type(engine).match_batch

    def counted(self: Engine, batch: DocumentBatch) -> object:
        calls.append(self)
        return match(self, batch)

    monkeypatch.setattr(type(engine), "match_batch", counted)
    together(bulk, read(opened, documents_of(Random(2), 30)))
    assert calls == [engine]


def test_documents_with_too_many_label_paths_are_left_to_the_routers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = stored(sectors(), str(tmp_path))
    monkeypatch.setattr(data_pattern_occurrences, "MOST_PATHS", 3)
    opened.labels._forget()
    bulk = BulkRouting(opened, Policy.read("L-d"), "automaton")
    assert bulk.visits(read(opened, documents_of(Random(3), 5)), links=True, text=False) is None


def test_text_is_marked_as_text(tmp_path: Path) -> None:
    opened = stored(sectors(), str(tmp_path))
    for policy in ("L", "L-s"):
        bulk = BulkRouting(opened, Policy.read(policy), "automaton")
        batch = read(opened, documents_of(Random(1), 8))
        made = bulk.visits(batch, links=True, text=True)
        assert made is not None
        (routers, messages), first = made, bulk.first(np.arange(8), text=True)
        handled = bulk.handle(first, ReadBatch(batch), text=True)
        found = {header_of(messages, int(number)) for number in messages.number}
        assert {header for one in handled.sent for header in one.headers} <= found
        assert len(routers.documents) > 8
