"""A server sends the same messages with the stabbing-set index as with the plain one, also for batches."""

from random import Random
from typing import Any

import numpy as np
import pytest

from pathcast.joins import JoinServer, Schema, select
from pathcast.joins.index.clustered_semijoin_index import StabbingIndex, stabbing_index
from pathcast.joins.index.scan_index import ScanIndex
from pathcast.joins.query.order_preserving_key_encoding import FLOAT, INT, STRING, Kind
from pathcast.messages import Message

QUERY = select("R", "S")


def servers(scheme: str) -> list[JoinServer]:
    """One of each index, with the same rows."""
    found = []
    for index in ("scan", "stabbing"):
        schema = Schema({"R": "b int, a float, p string", "S": "b int, c float"}, ["R.b = S.b"])
        found.append(JoinServer(schema, scheme, index=index))
    return found


def ranges(count: int, seed: int) -> dict[str, tuple[Any, Any]]:
    random = np.random.default_rng(seed)
    low = np.round(random.random((2, count)) * 60)
    width = np.round(random.random((2, count)) * [[12], [5]])
    return {"a": (low[0], low[0] + width[0]), "c": (low[1], low[1] + width[1])}


def changes(count: int, seed: int) -> list[tuple[Any, ...]]:
    """Rows come, go and change."""
    random = Random(seed)
    rows: list[tuple[str, dict[str, Any]]] = []
    found: list[tuple[Any, ...]] = []
    for _ in range(count):
        what = random.random()
        if what < 0.6 or not rows:
            value = float(random.randrange(60))
            row: dict[str, Any] = (
                {"b": random.randrange(3), "a": value, "p": "x"}
                if what < 0.3
                else {"b": random.randrange(3), "c": value}
            )
            rows.append(("R" if what < 0.3 else "S", row))
            found.append(("insert", *rows[-1]))
            continue
        at = random.randrange(len(rows))
        table, row = rows[at]
        if what < 0.75:
            found.append(("delete", *rows.pop(at)))
        else:
            column = "a" if table == "R" else "c"
            new = {column: row[column] + random.choice([-1.0, 2.0, 25.0])}
            found.append(("update", table, row, new))
            rows[at] = (table, {**row, **new})
    return found


def told(server: JoinServer, messages: list[Message]) -> list[tuple[int, ...]]:
    """Which subscriptions each message is for."""
    return [tuple(id for id in server.subscriptions if server.subscriptions[id].matches(one)) for one in messages]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["enum-sj", "enum-j", "ref-j+", "ref-sj-sub", "ref-sj-min"])
def test_servers_send_the_same_with_either_index(scheme: str) -> None:
    both = servers(scheme)
    for server in both:
        server.subscribe_many(QUERY, ranges(600, 1))
        for id in range(1, 600, 3):
            server.unsubscribe(id)
        server.subscribe_many(QUERY, ranges(50, 2))
    for change in changes(80, 3):
        plain, stabbing = (server.apply([change]) for server in both)
        assert plain == stabbing


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["ref-sj-clu", "ref-sj-clu+"])
def test_messages_with_other_skylines_are_for_the_same_subscriptions(scheme: str) -> None:
    both = servers(scheme)
    for server in both:
        server.subscribe_many(QUERY, ranges(60, 1))
        server.subscribe_many(QUERY, ranges(4, 2))
        server.unsubscribe(7)
    for change in changes(40, 4):
        plain, stabbing = (told(server, server.apply([change])) for server in both)
        # Messages that only one of them sends match no subscription.
        assert [one for one in plain if one] == [one for one in stabbing if one]


@pytest.mark.parametrize(
    ("base", "filtering", "stabbed"),
    [
        ([INT], [FLOAT], True), ([], [INT], True), ([INT], [], True), ([INT, INT], [], True), ([], [], True),
        ([STRING], [INT], False), ([INT], [STRING], False), ([INT, INT], [INT], False), ([INT], [INT, INT], False),
        ([INT] * 3, [], False),
    ],
)  # fmt: skip
def test_panels_of_other_shapes_have_the_plain_index(base: list[Kind], filtering: list[Kind], stabbed: bool) -> None:
    assert isinstance(stabbing_index(base, filtering), StabbingIndex if stabbed else ScanIndex)
