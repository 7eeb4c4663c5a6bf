"""Changing subscriptions: new ones begin with the content of the parts, existing ones continue unchanged."""

import pickle
from collections import Counter
from random import Random

import pytest

from pathcast.errors import QueryError
from pathcast.joins import Client, JoinServer, Schema, select
from pathcast.joins.partition.join_server_specification import StandingJoins
from pathcast.joins.partition.value_partitioned_join import Parts
from pathcast.joins.server.initial_contents import InitialContents
from tests.joins.test_value_partitioned_join import STOCKS, Pieces, history
from tests.joins.world import JOINS, TABLES, draw_query

BOTH = select("Stocks", "Reviews")


def run_versions(seed, scheme="ref-sj-clu+"):
    """A history in three versions; the clients at the end, and the rows that each should have."""
    random = Random(seed)
    world, changes, _ = history(random, 90, [], scheme)
    world.database.close()
    schema = Schema(TABLES, JOINS)
    standing = StandingJoins(schema, [draw_query(random.choice) for _ in range(4)], scheme)
    pieces = Pieces(standing)
    clients: dict[int, Client] = {}
    for version in range(3):
        first = 1
        if version:
            first, leaving = standing.next_id, random.sample(sorted(clients), 2)
            standing = standing.changed([draw_query(random.choice) for _ in range(3)], leaving)
            clients = {id: client for id, client in clients.items() if id not in leaving}
        subscriptions = standing.server().subscriptions
        clients |= {id: Client(schema, subscriptions[id]) for id in standing if id >= first}
        beginnings = InitialContents(pickle.loads(pickle.dumps(standing)).since(first))
        for key, state in pieces.states.items():
            for id, message in beginnings.of(key.edge, state):
                assert id >= first
                assert clients[id].receive(message)
        pieces.parts = Parts(pickle.loads(pickle.dumps(standing)))
        for begin in range(30 * version, 30 * (version + 1), 6):
            for answers in pieces.run(changes[begin : begin + 6], random).values():
                for message in [message for answer in answers for message in answer.messages]:
                    for client in clients.values():
                        client.receive(message)
    server = JoinServer(schema)
    server.apply([("insert", table, row) for table, rows in world.rows.items() for row in rows])
    asked = {one.id: one.query for one in standing.asked}
    expected = {id: Client(schema, server.subscribe(query)) for id, query in asked.items()}
    return clients, expected


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_whoever_comes_later_has_the_rows_and_whoever_stays_keeps_them(seed):
    clients, expected = run_versions(seed)
    assert clients.keys() == expected.keys()
    for id, client in clients.items():
        assert Counter(client.rows()) == Counter(expected[id].rows())
    assert any(client.rows() for client in clients.values())


def test_ids_are_not_used_again_and_forms_keep_their_numbers():
    both = "select * from Stocks natural join Reviews where per > 3 and rating > 1"
    first = StandingJoins(STOCKS, {"ada": "select * from Stocks", "bob": both})
    numbers = {str(form): number for form, number in first.numbers.items()}
    second = first.changed(remove=[1]).changed({"cyd": "select * from Reviews"}, [2])
    assert [*second] == [3]
    third = second.changed({"dan": both})
    assert [*third] == [3, 4]
    assert {str(form): number for form, number in third.numbers.items()}.items() >= numbers.items()
    assert third.server().subscriptions[4].forms.keys() == first.server().subscriptions[2].forms.keys()
    with pytest.raises(QueryError, match="unknown subscription id 1"):
        second.changed(remove=[1])


def test_members_of_a_batch_go_one_by_one_and_new_batches_follow():
    ranges = {"per": ([40, 50, 60], [60, 70, 80]), "rating": ([0, 5, 5], [5, 9, 9])}
    first = StandingJoins(STOCKS, ["select * from Stocks"], batches=[(BOTH, ranges)])
    second = first.changed(remove=[3], batches=[(BOTH, {"per": ([1], [2])})])
    assert [*second] == [1, 2, 4, 5]
    assert sorted(second.server().subscriptions) == [1, 2, 4, 5]
    assert [*second.since(3)] == [4, 5]
    assert second.since(4).server().subscriptions[4].query.ranges["Stocks"]["per"].low == 60
    assert [*second.changed(remove=[2, 4])] == [1, 5]
    with pytest.raises(QueryError, match="unknown subscription id 3"):
        second.changed(remove=[3])


def test_an_id_that_is_taken_is_refused():
    server = JoinServer(STOCKS)
    assert server.subscribe("select * from Stocks", id=7).id == 7
    assert server.subscribe("select * from Stocks").id == 8
    with pytest.raises(QueryError, match="subscription id 7 is already in use"):
        server.subscribe("select * from Stocks", id=7)
    with pytest.raises(QueryError, match="subscription id 7 is already in use"):
        server.subscribe_many(BOTH, {"per": ([1, 2], [2, 3])}, first=6)
