"""Join servers of several schemes, given the same changes in turn, timed, and their answers checked first.

A change is timed from the call to the last message's bytes, as the paper counts the output of messages: time of the
processor, not of the clock, so that a busy machine disturbs less. Servers take
changes in alternation, some at a time, in rotating order; one that has used up its seconds stops, so a scheme
that notifies thousands of subscriptions one by one gets fewer changes than the others. Garbage is collected before.

Invariant: every server takes the changes of its stream in order, and no time is taken before its clients' rows and
DuckDB's have been compared.
"""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from time import thread_time
from typing import TYPE_CHECKING, Any

from pathcast_lab.harness import Run, collector_paused

from .join_rivals import Oracle, Rival

if TYPE_CHECKING:
    from pathcast.joins import Client, JoinServer
    from pathcast.messages import Message
    from pathcast_lab.workloads import Change, JoinWorkload

# The number of changes of one server before the next server's turn: the first changes of a turn find cold caches.
_TURN = 50
# The least number of changes that are timed, however long they take.
_LEAST = 6
# Of this many subscriptions of a batch, those with the most rows become clients.
_CANDIDATES = 12
# Two-sided 95 % points of Student's t, from 1 degree of freedom on.
_STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


@dataclass
class Tally:
    """The counts and times of a server's changes."""

    seconds: dict[str, float] = field(default_factory=dict)
    changes: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    bytes: int = 0
    skylines: int = 0
    points: int = 0
    description: int = 0

    def us(self, verb: str) -> float | None:
        """µs per change of this kind."""
        return 1e6 * self.seconds[verb] / self.changes[verb] if self.changes[verb] else None

    @property
    def spent(self) -> float:
        """All seconds."""
        return sum(self.seconds.values())

    def each(self, count: float) -> float:
        """The mean per change."""
        return count / max(1, self.changes.total())


@dataclass
class Entrant:
    """A server, and its position in its stream of changes."""

    scheme: str
    server: "JoinServer"
    place: int = 0

    def step(self, changes: "Sequence[Change]", tally: Tally | None = None) -> "list[Message]":
        """Make the next change; count what it takes."""
        change = changes[self.place]
        self.place += 1
        begin = thread_time()
        messages = self.server.apply([change])
        size = sum(len(message.encode()) for message in messages)
        spent = thread_time() - begin
        if tally is not None:
            tally.seconds[change[0]] = tally.seconds.get(change[0], 0.0) + spent
            tally.changes[change[0]] += 1
            tally.messages += len(messages)
            tally.bytes += size
            _describe(messages, tally)
        return messages


def _describe(messages: "Iterable[Message]", tally: Tally) -> None:
    """Count skylines of tuples that come, their points and their bytes."""
    from pathcast.joins.schemes.reserved_message_attributes import ARRIVE, KIND, SKYLINE
    from pathcast.messages import Message, Points

    for message in messages:
        skyline = message.get(SKYLINE)
        if message.get(KIND) == ARRIVE and isinstance(skyline, Points):
            without = Message({name: value for name, value in message.items() if name != SKYLINE}, message.payload)
            tally.skylines += 1
            tally.points += len(skyline)
            tally.description += message.size - without.size


def race_changes(
    entrants: Sequence[Entrant], changes: "Sequence[Change]", count: int, seconds: float
) -> dict[str, Tally]:
    """Up to `count` changes for each server, and up to this many seconds."""
    tallies = {entrant.scheme: Tally() for entrant in entrants}
    last = {entrant.scheme: min(entrant.place + count, len(changes)) for entrant in entrants}

    def done(entrant: Entrant) -> bool:
        # Insertions and deletions come in pairs, and pairs are not split.
        tally = tallies[entrant.scheme]
        spent = tally.spent >= seconds and tally.changes.total() >= _LEAST
        return entrant.place >= last[entrant.scheme] or (spent and entrant.place % 2 == 0)

    waiting = list(entrants)
    with collector_paused():
        while waiting:
            for entrant in waiting:
                for _ in range(_TURN):
                    if not done(entrant):
                        entrant.step(changes, tallies[entrant.scheme])
            waiting = [entrant for entrant in (*waiting[1:], *waiting[:1]) if not done(entrant)]
    return tallies


def race_rivals(rivals: Sequence[Rival], rows: Sequence[Mapping[str, Any]], whole: int) -> dict[str, float]:
    """Seconds per insertion for all subscriptions; a sample's time is extrapolated."""
    spent: dict[str, float] = {}
    for rival in rivals:
        rival.results(rows[0])
        with collector_paused():
            begin = thread_time()
            for row in rows:
                rival.results(row)
            took = (thread_time() - begin) / len(rows)
        spent[rival.name] = took if rival.sample is None else took * whole / len(rival.sample)
    return spent


# Answers.


def check_clients(
    run: Run, workload: "JoinWorkload", entrants: Sequence[Entrant], *, changes: int, clients: int
) -> None:
    """Give some clients of every scheme the messages of some changes, and compare their rows with DuckDB's.

    The servers have all of the workload's subscriptions, in order.
    """
    for place in sorted({entrant.place for entrant in entrants}):
        together = [entrant for entrant in entrants if entrant.place == place]
        before, after = Oracle(workload, place), Oracle(workload, place + changes)
        chosen = list(_chosen(workload, before, clients))
        kept = {entrant.scheme: _clients(entrant, [id for id, _, _ in chosen]) for entrant in together}
        for entrant in together:
            for _ in range(changes):
                for message in entrant.step(workload.changes):
                    deliver(message, kept[entrant.scheme])
        for at, (_, batch, row) in enumerate(chosen):
            columns = kept[together[0].scheme][at].columns
            answers: dict[str, object] = {"DuckDB": after.rows(batch, row, columns)}
            answers |= {scheme: Counter(found[at].rows()) for scheme, found in kept.items()}
            run.check_equal("after some changes clients have, under every scheme, the rows that DuckDB gives", answers)
        before.close()
        after.close()


def deliver(message: "Message", clients: "Iterable[Client]") -> None:
    """Hand a message to all clients, or only to the one that the message names, as filters would."""
    from pathcast.joins.schemes.reserved_message_attributes import TO

    for client in clients:
        if message.get(TO, client.id) == client.id:
            client.receive(message)


def _chosen(workload: "JoinWorkload", oracle: Oracle, clients: int) -> Iterable[tuple[int, Any, int]]:
    """Ids, batches and places of some subscriptions of each batch: of some candidates, those with the most rows."""
    first = 1
    for batch in workload.batches:
        step = max(1, len(batch) // _CANDIDATES)
        sizes = {place: next(iter(oracle.rows(batch, place)))[0] for place in range(0, len(batch), step)}
        for place in islice(sorted(sizes, key=lambda place: -sizes[place]), clients):
            yield first + place, batch, place
        first += len(batch)


def _clients(entrant: Entrant, ids: Sequence[int]) -> "list[Client]":
    from pathcast.joins import Client

    server = entrant.server
    return [Client(server.schema, server.subscriptions[id]) for id in ids]


def check_results(run: Run, entrant: Entrant, rivals: Sequence[Rival], changes: "Sequence[Change]", count: int) -> None:
    """Compare what `enum-j` sends for some insertions with what the rivals find: who has results, and how many."""
    from pathcast.joins.schemes.reserved_message_attributes import RESULTS, TO
    from pathcast.messages import Points

    for _ in range(count):
        verb, _, row = changes[entrant.place]
        sent = {
            int(str(message[TO])) - 1: len(results)
            for message in entrant.step(changes)
            if isinstance(results := message.get(RESULTS), Points)
        }
        if verb != "insert":
            continue
        for rival in rivals:
            expected = sent if rival.sample is None else {at: n for at, n in sent.items() if at in rival.sample}
            run.check_equal(
                "an insertion's join results, as enum-j sends them, are those that every rival finds",
                {"enum-j": expected, rival.name: rival.answer(row)},
            )


def mean_interval(samples: Sequence[float]) -> tuple[float, float, float]:
    """The mean, and the ends of the interval that holds the true mean with 95 % probability (by Student's t)."""
    mean = statistics.fmean(samples)
    if len(samples) < 2:
        return mean, mean, mean
    student = _STUDENT[min(len(samples) - 2, len(_STUDENT) - 1)]
    half = student * statistics.stdev(samples) / math.sqrt(len(samples))
    return mean, mean - half, mean + half
