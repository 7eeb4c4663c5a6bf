"""An index from an untrusted source: its subscriptions are checked, and its compiled arrays are not trusted."""

import copy
import os
import subprocess
import sys
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

import pathcast
from pathcast.errors import PathcastError, SnapshotError
from pathcast.matching import engines
from pathcast.matching import stored_index as index
from pathcast.store import Snapshot, open_snapshot, write_snapshot

EXPRESSIONS = [
    "/a/b", "a//c", "//*/c", "/a[b][c]", "//b[@x = 'u']/c", "/a[@y > 3]//b", "//c[contains(., 'v') or not(d)]",
    "/f:a/b", "//f:c[d/e = 'w']", "/a/b", "/",
]  # fmt: skip
NAMESPACES = {"f": "urn:f"}
DOCUMENTS = [
    "<a y='4'><b x='u'><c>v</c></b><c/></a>",
    "<f:a xmlns:f='urn:f'><b/><f:c><d><e>w</e></d></f:c></f:a>",
    "<n><m/><c><d/></c></n>",
]


@pytest.fixture(autouse=True)
def _not_to_last(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)


def saved(folder, engine=None):
    """An index with gaps, ids out of order, subscribers, and all kinds of patterns; and its answers."""
    subscriptions = pathcast.Subscriptions(NAMESPACES)
    count = len(EXPRESSIONS)
    names = [None if at % 3 == 0 else f"s{at % 4}" for at in range(count)]
    subscriptions.add_many(EXPRESSIONS, names, ids=[*range(50, 50 + count - 2), 7, 9])
    subscriptions.remove(52)
    subscriptions.add("/z/y")
    matcher = subscriptions.compile(engine)
    answers = answered(matcher)
    matcher.save(folder)
    return subscriptions, answers


def answered(matcher):
    found = matcher.match_many(DOCUMENTS)
    return [(each.ids.tolist(), each.subscribers) for each in found]


def rows(subscriptions):
    return [(one.id, one.xpath, one.subscriber) for one in subscriptions]


@pytest.mark.parametrize("engine", engines())
def test_an_index_is_the_same_when_it_is_not_trusted(tmp_path, engine):
    subscriptions, answers = saved(tmp_path / "index", engine)
    opened = pathcast.open_index(tmp_path / "index", trusted=False)
    assert (opened.engine_name, answered(opened)) == (engine, answers)
    assert rows(opened.subscriptions) == rows(subscriptions)
    assert opened.subscriptions.add("/q") == subscriptions.add("/q")


def rewritten(folder, change):
    """A valid index, except for the change of its facts and arrays by `change`; its checksums are right."""
    saved(folder / "right")
    snapshot = open_snapshot(folder / "right", "index")
    facts, arrays = copy.deepcopy(snapshot.facts), {name: array.copy() for name, array in snapshot.arrays.items()}
    change(facts, arrays)
    write_snapshot(folder / "wrong", "index", facts, arrays)
    return folder / "wrong"


def put(name, place, value):
    def change(facts, arrays):
        arrays["subscriptions_" + name][place] = value

    return change


def give(name, array):
    def change(facts, arrays):
        arrays["subscriptions_" + name] = np.asarray(array)

    return change


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(put("ids", 3, 50), "twice|already in use", id="an id twice"),
        pytest.param(put("ids", 3, -1), "must be a whole number", id="an id below 1"),
        pytest.param(put("entries", 0, 99), "subscriptions refer to patterns that do not exist", id="no such entry"),
        pytest.param(
            put("owners", 0, 4), "subscriptions refer to subscribers that do not exist", id="no such subscriber"
        ),
        pytest.param(put("text_slots", 0, 99), "texts refer to subscriptions that", id="a text of nobody"),
        pytest.param(put("text_offsets", 1, 1 << 40), "do not ascend from 0 to", id="a text beyond"),
        pytest.param(put("owner_names", 0, 0xFF), "not UTF-8", id="a name that is none"),
        pytest.param(put("table_nodes", 0, 1 << 20), "patterns refer to steps that do not exist", id="no such node"),
        pytest.param(put("table_trie_step", 1, 1 << 20), "steps refer to names that do not exist", id="no such name"),
        pytest.param(
            put("table_trie_parent", 1, 2), "the parent of step 1, 2, does not precede the step", id="a circle"
        ),
        pytest.param(
            put("table_trees_entries", 0, 99), "texts refer to patterns that do not exist", id="a tree of no entry"
        ),
        pytest.param(
            give("ids", np.zeros(3)), "'ids' is 1-dimensional float64, expected", id="numbers of another kind"
        ),
        pytest.param(give("entries", np.zeros(2, np.int32)), "differ in length", id="too few"),
        pytest.param(give("texts", np.zeros((2, 2), np.uint8)), "byte strings", id="a table of bytes"),
        pytest.param(lambda facts, _: facts.update(max_steps="x"), "'max_steps' in the manifest", id="no number"),
        pytest.param(lambda facts, _: facts.update(next_id=0), "'next_id' in the manifest", id="an id that is none"),
        pytest.param(lambda facts, _: facts.update(namespaces=[1]), "namespaces", id="namespaces"),
        pytest.param(lambda facts, _: facts.pop("engine"), "needs the unknown engine None", id="no engine"),
        pytest.param(lambda facts, _: facts.update(layout="x"), "layout 'x'", id="no layout"),
    ],
)
def test_what_is_wrong_with_subscriptions_is_told(tmp_path, change, reason):
    folder = rewritten(tmp_path, change)
    with pytest.raises(SnapshotError, match=reason):
        pathcast.open_index(folder, trusted=False)


def changed(array, random):
    """An array with other numbers in some places, or of another length or kind."""
    array = array.copy()
    way = random.random()
    if way < 0.1:
        return array.reshape(-1)[: random.randrange(array.size + 1)].copy()
    if way < 0.15:
        with np.errstate(invalid="ignore"):
            return array.astype(random.choice([np.int64, np.float64, np.uint8, np.int32]))
    array = np.atleast_1d(array)
    flat = array.reshape(-1).view(np.uint8 if array.dtype.kind in "fb" else array.dtype)
    for _ in range(random.randint(1, 3)):
        if flat.size:
            limits = np.iinfo(flat.dtype)
            near = [0, 1, -1, limits.min, limits.max, flat.size, int(flat[random.randrange(flat.size)]) + 1]
            value = min(max(random.choice(near), limits.min), limits.max)
            flat[random.randrange(flat.size)] = value
    return array


def open_changed(folder, count):
    """Open indexes that were changed and signed again, for each engine in turn; return how many could be opened."""
    random, opened = Random(11), 0
    originals = []
    current: list[Snapshot] = []
    for number, engine in enumerate(engines()):
        _, answers = saved(f"{folder}/{number}", engine)
        originals.append((open_snapshot(f"{folder}/{number}", "index"), answers))
    # As if they were written and signed each time.
    replaced: Any = index
    replaced.open_snapshot = lambda *_, **__: current[0]
    for turn in range(count):
        snapshot, answers = originals[turn % len(originals)]
        arrays = dict(snapshot.arrays)
        ours = [name for name in arrays if name.startswith("subscriptions_")]
        chosen = random.choices(ours if random.random() < 0.7 else list(arrays), k=random.randint(1, 2))
        arrays |= {name: changed(arrays[name], random) for name in chosen}
        current[:] = [replace(snapshot, arrays=arrays)]
        try:
            found = answered(pathcast.open_index(folder, trusted=False))
        except PathcastError:
            continue
        opened += 1
        assert all(isinstance(id, int) for ids, _ in found for id in ids)
        assert found == answers or any(name in ours for name in chosen), chosen
    return opened


@pytest.mark.slow
def test_an_index_that_was_changed_and_signed_anew_is_an_error_or_answers(tmp_path):
    program = "import runpy, sys; print(runpy.run_path(sys.argv[1])['open_changed'](sys.argv[2], 600))"
    command = [sys.executable, "-c", program, __file__, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50
