"""Parts: a standing join partitioned by join value yields the messages of one server, in order, for any batches."""

import pickle
from collections import Counter, defaultdict
from datetime import date
from random import Random

import pytest

from pathcast.errors import ChangeError, QueryError, SchemaError
from pathcast.joins import Client, Schema, select
from pathcast.joins.partition.join_server_specification import StandingJoins
from pathcast.joins.partition.value_partitioned_join import REMEMBERED, Key, Parts
from pathcast.joins.query.value_text_conversion import write_row
from tests.joins.world import JOINS, TABLES, World, draw_query

SCHEMES = ["ref-sj-clu+", "ref-sj-sub", "rel-sel"]


class Pieces:
    """All parts of a standing join, run batch by batch."""

    def __init__(self, standing):
        self.parts = Parts(pickle.loads(pickle.dumps(standing)))
        self.states = {}
        self.batch = 0

    def run(self, changes, random=None):
        """Run a batch of (sequence, change); the answers of each key, in order."""
        waiting = defaultdict(list)
        for sequence, (verb, table, row, *values) in changes:
            for key, event in self.parts.events(sequence, verb, table, row, *values):
                waiting[key].append(event)
        answers = {}
        for key, events in waiting.items():
            if random is not None:
                random.shuffle(events)
            state, answers[key] = self.parts.run(key.edge, self.states.get(key), events, self.batch)
            self.states[key] = state
        self.batch += 1
        return answers


def history(random, count, queries, scheme, later=()):
    """Random changes, with the messages of one server that numbers rows by events; some subscriptions begin halfway."""
    world = World(scheme)
    for query in queries:
        world.subscribe(query)
    changes, expected = [], {}
    for sequence in range(1, count + 1):
        if sequence == count // 2 + 1:
            for query in later:
                world.subscribe(query)
        change = world.draw_change(random.choice)
        world.server._next_row = sequence
        changes.append((sequence, change))
        expected[sequence] = world.server.apply([change])
        verb, table, row, *more = change
        if verb != "insert":
            world.rows[table].remove(row)
        if verb != "delete":
            world.rows[table].append({**row, **more[0]} if more else row)
    return world, changes, expected


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("seed", range(2))
def test_messages_are_those_of_one_server(scheme, seed):
    random = Random(f"{scheme} {seed}")
    queries = [draw_query(random.choice) for _ in range(8)]
    world, changes, expected = history(random, 120, queries, scheme)
    standing = StandingJoins(Schema(TABLES, JOINS), queries, scheme)
    clients = [Client(standing.schema, one) for one in standing.server().subscriptions.values()]
    pieces = Pieces(standing)
    found: defaultdict[int, Counter[bytes]] = defaultdict(Counter)
    at = 0
    while at < len(changes):
        size = random.choice([1, 3, 20])
        for answers in pieces.run(changes[at : at + size], random).values():
            for event, messages, error in answers:
                assert error is None
                found[event.sequence].update(message.encode() for message in messages)
                for client in clients:
                    for message in messages:
                        client.receive(message)
        at += size
    for sequence, messages in expected.items():
        assert found[sequence] == Counter(message.encode() for message in messages), sequence
    for client, (_, subscription, _) in zip(clients, world.clients.values(), strict=True):
        for table, content in world.server.contents(subscription).items():
            assert client.content(table) == content
    world.database.close()


STOCKS = Schema(
    {"Stocks": "symbol string, per float", "Reviews": "symbol string, rating float"},
    joins=["Stocks.symbol = Reviews.symbol"],
)
STANDING = StandingJoins(STOCKS, {"x1": "select * from Stocks natural join Reviews where per >= 45 and rating >= 6"})


def stock(per, symbol="G"):
    return {"symbol": symbol, "per": per}


def test_in_one_part_messages_come_in_the_order_of_events():
    pieces = Pieces(STANDING)
    changes = [(3, ("insert", "Stocks", stock(50))), (1, ("insert", "Reviews", {"symbol": "G", "rating": 7}))]
    (answers,) = pieces.run(changes).values()
    assert [answer.event.sequence for answer in answers] == [1, 3]
    assert [len(answer.messages) for answer in answers] == [0, 2]
    assert list(pieces.states) == [Key(0, '["G"]')]


def test_an_event_that_comes_again_is_passed_by():
    pieces = Pieces(STANDING)
    first = (1, ("insert", "Stocks", stock(50)))
    again = [first, first, (2, ("insert", "Reviews", {"symbol": "G", "rating": 7})), first]
    (answers,) = pieces.run(again).values()
    assert [answer.event.sequence for answer in answers] == [1, 2]
    before = dict(pieces.states)
    assert list(pieces.run([first, again[2]]).values()) == [[]]
    assert {key: len(state) for key, state in pieces.states.items()} == {
        key: len(state) for key, state in before.items()
    }
    (answers,) = pieces.run([(3, ("delete", "Stocks", stock(50)))]).values()
    assert answers[0].error is None
    (answers,) = pieces.run([(4, ("delete", "Stocks", stock(50)))]).values()
    assert "has no row" in answers[0].error.reason


def test_an_event_whose_row_is_there_is_passed_by_however_late_it_comes():
    pieces = Pieces(STANDING)
    first = (1, ("insert", "Stocks", stock(50)))
    pieces.run([first])
    pieces.batch += REMEMBERED
    pieces.run([(2, ("insert", "Stocks", stock(60)))])
    assert list(pieces.run([first]).values()) == [[]]
    (answers,) = pieces.run([(3, ("delete", "Stocks", stock(50))), (4, ("delete", "Stocks", stock(50)))]).values()
    assert answers[0].error is None
    assert "has no row" in answers[1].error.reason


def test_an_event_that_comes_late_is_made_late():
    pieces = Pieces(STANDING)
    client = Client(STOCKS, STANDING.server().subscriptions[1])
    review = {"symbol": "G", "rating": 7}
    batches = [
        [(5, ("insert", "Stocks", stock(50)))],
        [
            (2, ("insert", "Reviews", review)),
            (6, ("delete", "Stocks", stock(50))),
            (3, ("insert", "Stocks", stock(60))),
        ],
    ]
    made = []
    for batch in batches:
        for answer in [answer for answers in pieces.run(batch).values() for answer in answers]:
            made.append(answer.event.sequence)
            assert answer.error is None
            for message in answer.messages:
                client.receive(message)
    assert made == [5, 2, 3, 6]
    assert client.rows() == [("G", 60, 7)]


def test_a_part_is_run_from_the_state_that_it_is_given():
    parts = Parts(STANDING)

    def run(state, sequence, *change):
        ((key, event),) = parts.events(sequence, *change)
        return parts.run(key.edge, state, [event])

    first, _ = run(None, 1, "insert", "Stocks", stock(50))
    given_up, _ = run(first, 2, "delete", "Stocks", stock(50))
    again, (answer,) = run(first, 2, "delete", "Stocks", stock(50))  # an abandoned attempt
    assert (again, answer.error) == (given_up, None)
    _, (answer,) = run(again, 3, "delete", "Stocks", stock(50))
    assert answer.error is not None and "has no row" in answer.error.reason
    _, (answer,) = run(first, 4, "insert", "Reviews", {"symbol": "G", "rating": 7})
    assert len(answer.messages) == 2
    _, (answer,) = run(None, 5, "insert", "Reviews", {"symbol": "G", "rating": 7})
    assert answer.messages == []


def test_a_part_that_failed_is_read_anew(monkeypatch):
    parts = Parts(STANDING)
    ((key, event),) = parts.events(1, "insert", "Stocks", stock(50))
    state, _ = parts.run(key.edge, None, [event])
    ((_, more),) = parts.events(2, "insert", "Stocks", stock(60))
    with monkeypatch.context() as patch:
        patch.setattr(parts.site(0), "written", lambda part: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            parts.run(key.edge, state, [more])
    ((_, gone),) = parts.events(3, "delete", "Stocks", stock(60))
    _, (answer,) = parts.run(key.edge, state, [gone])
    assert answer.error is not None and "has no row" in answer.error.reason


def test_what_was_seen_is_remembered_for_some_batches():
    pieces = Pieces(STANDING)
    pieces.run([(1, ("insert", "Stocks", stock(50)))])
    sizes = []
    for batch in range(2, 30):
        pieces.run([(batch, ("insert", "Stocks", stock(50))), (100 + batch, ("delete", "Stocks", stock(50)))])
        sizes.append(len(pieces.states[Key(0, '["G"]')]))
    assert max(sizes[12:]) <= max(sizes[:12])


def test_a_part_without_rows_is_nothing_once_its_events_are_forgotten():
    parts = Parts(STANDING)
    ((key, event),) = parts.events(1, "insert", "Stocks", stock(50))
    state, _ = parts.run(key.edge, None, [event], 0)
    ((_, gone),) = parts.events(2, "delete", "Stocks", stock(50))
    state, _ = parts.run(key.edge, state, [gone], 1)
    assert state is not None
    assert parts.run(key.edge, state, [], 50) == (None, [])


def test_an_update_that_moves_a_row_is_told_in_both_parts():
    pieces = Pieces(STANDING)
    pieces.run([(1, ("insert", "Stocks", stock(50))), (2, ("insert", "Reviews", {"symbol": "H", "rating": 9}))])
    answers = pieces.run([(3, ("update", "Stocks", stock(50), {"symbol": "H"}))])
    assert {key.value: len(each[0].messages) for key, each in answers.items()} == {'["G"]': 0, '["H"]': 2}
    assert all(answer.error is None for each in answers.values() for answer in each)


def test_an_update_of_a_row_that_is_not_there_is_an_error_and_an_insertion():
    for values in ({"per": 60}, {"symbol": "H"}):
        pieces = Pieces(STANDING)
        answers = pieces.run([(1, ("update", "Stocks", stock(50), values))])
        errors = [answer.error for each in answers.values() for answer in each if answer.error]
        assert len(errors) == 1
        new = {**stock(50), **values}
        (answers,) = pieces.run([(2, ("delete", "Stocks", new))]).values()
        assert answers[0].error is None


def test_values_may_be_as_json_has_them():
    parts = Parts(StandingJoins(Schema({"T": "d date, n int, x float"}), ["select * from T where n > 3"]))
    ((key, event),) = parts.events(1, "insert", "T", {"d": "2026-01-31", "n": 4.0, "x": 1})
    assert event.new is not None
    assert write_row(dict(zip("dnx", event.new, strict=True))) == '{"d": "2026-01-31", "n": 4, "x": 1}'
    assert key == Key(-1, '["T", "2026-01-31", 4, 1]')
    assert parts.events(2, "insert", "T", {"n": 4})[0][1].new == (None, 4, None)


def test_equal_join_values_are_one_part_whatever_their_kind():
    schema = Schema({"A": "k int", "B": "k float"}, joins=["A.k = B.k"])
    parts = Parts(StandingJoins(schema, ["select * from A natural join B"]))
    keys = [parts.events(1, "insert", "A", {"k": 2})[0][0], parts.events(2, "insert", "B", {"k": 2.0})[0][0]]
    assert keys[0] == keys[1]


def test_a_blank_is_no_join_value():
    schema = Schema({"A": "k date, n int", "B": "k date"}, joins=["A.k = B.k"])
    parts = Parts(StandingJoins(schema, ["select * from A natural join B"]))
    with pytest.raises(ChangeError, match=r"A\.k is a join column and must not be NULL"):
        parts.events(1, "insert", "A", {"k": " ", "n": 1})
    ((_, event),) = parts.events(1, "insert", "A", {"k": "2026-01-31", "n": ""})
    assert event.new == (date(2026, 1, 31), None)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("upsert", "Stocks", stock(1)), "got 'upsert'"),
        (("update", "Stocks", stock(1)), "an update with new values"),
        (("insert", "Shares", {}), "unknown table 'Shares'"),
        (("insert", "Stocks", {"symbol": None, "per": 1}), "must not be NULL"),
        (("insert", "Stocks", {"symbol": "G", "per": "much"}), "Stocks.per: expected a float"),
        (("insert", "Stocks", {"symbol": "G", "price": 1}), "no column 'price'"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(change, reason):
    with pytest.raises(ChangeError) as caught:
        Parts(STANDING).events(1, *change)
    assert reason in caught.value.reason


def test_what_parts_cannot_do_is_said():
    with pytest.raises(QueryError, match="sends join results"):
        StandingJoins(STOCKS, [], "ref-j")
    with pytest.raises(SchemaError, match=r"A\.k has no kind"):
        StandingJoins(Schema({"A": "k"}), ["select * from A"])
    with pytest.raises(SchemaError, match="payloads"):
        StandingJoins(Schema({"A": "k int, p bytes"}, payloads={"A": "p"}), [])
    with pytest.raises(QueryError, match="a list of queries"):
        StandingJoins(STOCKS, "select * from Stocks")


def test_many_subscriptions_travel_as_arrays():
    ranges = {"per": ([40, 50], [60, 70]), "rating": ([0, 5], [5, 9])}
    standing = StandingJoins(STOCKS, ["select * from Stocks"], batches=[(select("Stocks", "Reviews"), ranges)])
    assert list(pickle.loads(pickle.dumps(standing)).server().subscriptions) == [1, 2, 3]
