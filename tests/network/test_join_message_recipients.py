"""Recipients are exactly the subscriptions that have a matching filter, with shares or without."""

from random import Random

import numpy as np
import pytest

from pathcast.joins import Schema, select
from pathcast.joins.partition.join_server_specification import StandingJoins
from pathcast.joins.schemes.reserved_message_attributes import TO
from pathcast.messages import Message
from pathcast.network.join_message_recipients import Recipients
from tests.joins.test_value_partitioned_join import history
from tests.joins.world import JOINS, TABLES, draw_query


def by_filters(standing, message):
    subscriptions = standing.server().subscriptions
    return [id for id in sorted(standing) if subscriptions[id].matches(message)]


@pytest.mark.slow
@pytest.mark.parametrize("shares", [1, 3])
def test_recipients_are_those_whose_filters_match(shares):
    random = Random(shares)
    queries = [draw_query(random.choice) for _ in range(12)]
    world, _, expected = history(random, 60, queries, "ref-sj-clu+")
    world.database.close()
    draw = np.random.default_rng(1)
    low = draw.integers(0, 9, (3, 30))
    ranges = {"a": (low[0], low[0] + draw.integers(0, 4, 30)), "c": (low[1] / 2, low[1] / 2 + draw.integers(0, 4, 30))}
    standing = StandingJoins(Schema(TABLES, JOINS), queries, batches=[(select("R", "S"), ranges)])
    standing = standing.changed(remove=[2, 20], batches=[(select("R"), {"a": (low[2], low[2] + 2)})])
    server = standing.server()
    tables = [Recipients(standing, share, shares) for share in range(shares)]
    messages = [message for each in expected.values() for message in each]
    # The same tables, from a server that knows the batches as well.
    for _ in range(2):
        messages += server.insert("R", {"k": 1, "a": 4, "p": "x"})
        messages += server.insert("S", {"k": 1, "m": 0, "c": 2.5, "d": None})
    subscriptions = standing.server().subscriptions
    filters = {id: subscriptions[id] for id in sorted(standing)}
    assert any(len(tables[0].of(message)) > 3 for message in messages)
    for message in messages:
        found = sorted(int(id) for table in tables for id in table.of(message))
        assert found == [id for id, one in filters.items() if one.matches(message)]


def test_a_message_to_one_goes_to_that_one_if_it_is_there():
    standing = StandingJoins(Schema({"A": "k int"}), ["select * from A", "select * from A"]).changed(remove=[1])
    tables = [Recipients(standing, share, 2) for share in range(2)]
    assert [[*table.of(Message({TO: id}))] for id in (1, 2, 3) for table in tables] == [[], [], [2], [], [], []]


LARGE = 1 << 60


@pytest.mark.parametrize(
    ("kind", "values"), [("int", (LARGE, LARGE + 1, LARGE + 2, 5, 6, 7)), ("float", (float(LARGE), 5.0, 7.0))]
)
def test_whole_numbers_beyond_floats_are_told_apart(kind, values):
    ends = np.array([LARGE, LARGE + 1, 5])
    standing = StandingJoins(Schema({"A": f"k {kind}"}), batches=[(select("A"), {"k": (ends, ends + 300)})])
    recipients = Recipients(standing)
    for value in values:
        (message,) = standing.server().insert("A", {"k": value}) or [Message({})]
        assert recipients.of(message).tolist() == by_filters(standing, message)
