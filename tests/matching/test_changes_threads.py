"""Live changes from many threads: each view shows one version, complete and unchanging."""

import random
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from pathcast import Subscriptions
from pathcast.matching import Tuning
from pathcast.matching.results.match_expansion import Expansion
from pathcast.matching.results.subscribers_of_document_batches import SubscriberRows

XPATHS = [f"/a/b{number}" for number in range(40)]
CHANGES = 6_000
# With this tuning, rows are laid out again often.
OFTEN = Tuning(changed_rows=100)


@pytest.fixture(autouse=True)
def hurry() -> Iterator[None]:
    """Make threads switch often."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(2e-5)
    yield
    sys.setswitchinterval(interval)


Seen = tuple[int, list[int], list[int], int, list[str], list[str]]
Contents = dict[int, tuple[int, str | None]]


def look(expansion: Expansion, chance: random.Random) -> Seen:
    """Expand a document's entries in all ways, with other threads running in between."""
    entries = np.array(sorted(chance.sample(range(60), 12)), dtype=np.int32)
    ids = sorted(expansion.ids_of_all(np.array([0, len(entries)], dtype=np.int64), entries)[1].tolist())
    subscribers = SubscriberRows(expansion)
    ranks = subscribers.of_all(np.array([0, len(entries)], dtype=np.int64), entries)[1]
    names = [subscribers.names[rank] for rank in ranks.tolist()]
    return expansion.version, entries.tolist(), ids, expansion.count(entries), expansion.subscribers_of(entries), names


def wanted(contents: Contents, entries: list[int]) -> tuple[list[int], list[str]]:
    found = {number: person for number, (entry, person) in contents.items() if entry in entries}
    return sorted(found), sorted({person for person in found.values() if person is not None})


def run(*calls: object) -> None:
    """Run all at once, to the end; raise the first error of any."""
    errors: list[BaseException] = []

    def guarded(call) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised in the main thread
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.slow
def test_each_reader_sees_exactly_one_version() -> None:
    subscriptions = Subscriptions(tuning=OFTEN)
    subscriptions.add_many(XPATHS)
    log: list[tuple[int, tuple[int, str | None] | None]] = []
    over = threading.Event()
    newest = dict.fromkeys((1, 2, 3), 1)

    def write() -> None:
        chance = random.Random(1)
        live = dict.fromkeys(range(1, 41))
        for change in range(CHANGES):
            if change % 4 == 0:
                time.sleep(1e-5)
            if change % 40 == 0:  # also on a busy machine, readers see a version of every 40
                while subscriptions.version - max(newest.values()) > 40 and not over.is_set():
                    time.sleep(1e-3)
            kind = chance.random()
            number = chance.choice(list(live)) if live else 0
            if not live or kind < 0.45:
                entry, person = chance.randrange(len(XPATHS)), f"p{chance.randrange(change // 20 + 1)}"
                number = subscriptions.add(XPATHS[entry], person)
                live[number] = person
                log.append((number, (entry, person)))
            elif kind < 0.8 or len(live) > 300:
                subscriptions.remove(number)
                del live[number]
                log.append((number, None))
            else:
                entry = chance.randrange(len(XPATHS))
                subscriptions.replace(number, XPATHS[entry])
                log.append((number, (entry, live[number])))
        over.set()

    seen: list[Seen] = []

    def read(seed: int) -> None:
        chance = random.Random(seed)
        kept: list[Expansion] = []
        try:
            while not over.is_set():
                if kept and kept[-1].version == subscriptions.version:
                    time.sleep(1e-4)  # look again only after a change, however slow the writer is
                    continue
                kept = [*kept[-20:], subscriptions.expansion()]
                seen.append(look(kept[-1], chance))
                seen.append(look(chance.choice(kept), chance))
                newest[seed] = kept[-1].version
        finally:
            over.set()  # the writer does not wait for a reader that failed

    run(write, *(lambda seed=seed: read(seed) for seed in (1, 2, 3)))
    contents: Contents = {number: (number - 1, None) for number in range(1, 41)}
    first, done = 1, 0
    assert subscriptions.version == first + CHANGES and len({version for version, *_ in seen}) > 100
    for version, entries, ids, count, people, names in sorted(seen):
        for number, what in log[done : version - first]:
            if what is None:
                del contents[number]
            else:
                contents[number] = what
        done = version - first
        right_ids, right_people = wanted(contents, entries)
        assert (ids, count, people, names) == (right_ids, len(right_ids), right_people, right_people), version


def test_writers_do_not_lose_each_others_changes() -> None:
    subscriptions = Subscriptions(tuning=OFTEN)
    models: list[dict[int, tuple[str, str]]] = [{} for _ in range(4)]

    def write(which: int) -> None:
        chance = random.Random(which)
        mine = models[which]
        for change in range(500):
            xpath = f"/x{which}/y{change % 50}"
            kind = chance.random()
            if not mine or kind < 0.5:
                mine[subscriptions.add(xpath, f"p{which}")] = xpath, f"p{which}"
            elif kind < 0.6:
                added = subscriptions.add_many([xpath] * 7, [f"p{which}"] * 7)
                mine.update(dict.fromkeys(added, (xpath, f"p{which}")))
            elif kind < 0.8:
                subscriptions.remove(mine.popitem()[0])
            else:
                number = chance.choice(list(mine))
                subscriptions.replace(number, xpath)
                mine[number] = xpath, f"p{which}"

    run(*(lambda which=which: write(which) for which in range(4)))
    together = {number: what for model in models for number, what in model.items()}
    assert sum(map(len, models)) == len(together) == len(subscriptions)
    assert {s.id: (s.xpath, s.subscriber) for s in subscriptions} == together
    assert subscriptions.expansion().count(np.arange(len(subscriptions.table), dtype=np.int32)) == len(together)
    assert subscriptions.version == 4 * 500
