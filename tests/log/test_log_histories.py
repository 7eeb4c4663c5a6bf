"""Random histories of a log, compared with a list."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from pathcast.log import Checkpoint, LogError, LogRecord, TrimmedError

from .places import PLACE_NAMES, PLACES, ListLog, Place, SettableClock

RECORDS = st.lists(
    st.builds(
        LogRecord,
        st.sampled_from(["document", "subscription", "limit"]),
        st.binary(max_size=30),
        st.one_of(st.binary(max_size=60), st.integers(100, 40_000).map(lambda size: b"z" * size)),
    ),
    max_size=6,
)


class History(RuleBasedStateMachine):
    """A log and a list that get the same calls."""

    new_place: Callable[[], Place]

    @initialize(begin=st.sampled_from([1, 1, 1, 1000]))
    def create(self, begin):
        self.place = self.new_place()
        self.clock = SettableClock()
        self.log = self.place.open(self.clock)
        self.model, self.checkpoint, self.time = ListLog(begin), None, 0
        if begin > 1:
            self.log.begin_at(begin)
            self.log.write_checkpoint(begin - 1, b"imported")
            self.checkpoint = Checkpoint(begin - 1, b"imported")

    @rule(records=RECORDS, passed=st.integers(-50, 50))
    def append(self, records, passed):
        self.clock.now += passed
        assert self.log.append(records) == self.model.head + 1
        if records:
            self.time = max(self.time, self.clock.now)
        self.model.append(records, self.time)

    @rule(closed=st.booleans())
    def open_again(self, closed):
        # Without closing, a log that was dropped would keep its lock: tests that kill a process cover that.
        self.log.close()
        if closed:
            self.log.close()
        self.log = self.place.open(self.clock)

    @rule(back=st.integers(-2, 10), data=st.binary(max_size=20))
    def write_checkpoint(self, back, data):
        sequence = self.model.head - back
        lowest = self.model.first - 1 if self.checkpoint is None else self.checkpoint.sequence
        if lowest <= sequence <= self.model.head:
            self.log.write_checkpoint(sequence, data)
            self.checkpoint = Checkpoint(sequence, data)
        else:
            with pytest.raises(ValueError, match=f"sequence must be .*, got {sequence}$"):
                self.log.write_checkpoint(sequence, data)

    @rule(back=st.integers(-1, 10))
    def trim(self, back):
        begin = max(1, self.model.head + 1 - back)
        covered = 0 if self.checkpoint is None else self.checkpoint.sequence
        if begin - 1 > covered:
            with pytest.raises(LogError):
                self.log.trim(begin)
        else:
            first = self.log.trim(begin)
            assert self.model.first <= first <= max(begin, self.model.first)
            self.model.trimmed(first)

    @rule(
        begin=st.integers(-2, 60),
        length=st.none() | st.integers(0, 40),
        kinds=st.none() | st.lists(st.sampled_from(["document", "subscription", "limit"]), max_size=2),
        bodies=st.booleans(),
    )
    def read(self, begin, length, kinds, bodies):
        begin += self.model.first
        end = None if length is None else begin + length
        last = self.model.head + 1 if end is None else min(end, self.model.head + 1)
        reading = self.log.read(begin, end, kinds=kinds, bodies=bodies)
        if max(begin, 1) < min(last, self.model.first):
            with pytest.raises(TrimmedError) as caught:
                list(reading)
            assert caught.value.first == self.model.first
            return
        expected = [
            entry if bodies else entry._replace(body=b"")
            for entry in self.model.entries
            if begin <= entry.sequence < last and (kinds is None or entry.kind in kinds)
        ]
        assert list(reading) == expected

    @rule(offset=st.integers(-100, 100))
    def sequence_at(self, offset):
        time = self.clock.now + offset
        expected = next((e.sequence for e in self.model.entries if e.time >= time), self.model.head + 1)
        assert self.log.sequence_at(time) == expected

    @invariant()
    def ends_and_checkpoint_are_those_of_the_model(self):
        assert (self.log.first, self.log.head) == (self.model.first, self.model.head)
        assert self.log.checkpoint() == self.checkpoint

    def teardown(self):
        if hasattr(self, "log"):
            assert list(self.log.read(self.model.first)) == self.model.entries
            self.log.close()


@pytest.mark.parametrize("kind", PLACE_NAMES)
def test_a_log_is_a_list_that_can_be_trimmed(kind: str, folder: Path, request: pytest.FixtureRequest):
    numbers = count()

    class OfThisKind(History):
        new_place = staticmethod(lambda: PLACES[kind](folder / str(next(numbers)), request))

    rounds = 500 if request.config.getoption("--long") else 25
    run_state_machine_as_test(OfThisKind, settings=settings(max_examples=rounds, stateful_step_count=30, deadline=None))
