"""Clients: malformed messages are rejected, and change nothing."""

from random import Random
from typing import Any

import pytest

from pathcast import MessageError
from pathcast.joins import SCHEMES, Client, JoinServer, Schema
from pathcast.messages import Message, Points

SCHEMA = {"R": "b int, a int", "S": "b int, c int", "T": "b int, d int"}
QUERY = "select * from R natural join S natural join T where a > 3 and c between 2 and 8"


def story(scheme: str) -> tuple[Client, list[Message]]:
    """A client, and messages that it accepts in this order."""
    random = Random(7)
    schema = Schema(SCHEMA, ["R.b = S.b", "S.b = T.b"])
    server = JoinServer(schema, scheme)
    subscription = server.subscribe(QUERY)
    client = Client(schema, subscription)
    names = {"R": "a", "S": "c", "T": "d"}
    rows: list[tuple[str, dict[str, int]]] = []
    messages: list[Message] = []
    for _ in range(30):
        table = random.choice("RST")
        row = {"b": random.randrange(2), names[table]: random.randrange(10)}
        rows.append((table, row))
        messages += server.insert(table, row)
    for table, row in random.sample(rows, 12):
        messages += server.update(table, row, {names[table]: random.randrange(10)})
    messages += server.regroup(by="simulation", force=True).messages
    return client, messages


def state(client: Client) -> Any:
    contents = {table: client.content(table) for table in client.query.tables}
    return contents, sorted(client.rows(), key=repr), client.filters, client._forms


def damaged(message: Message, random: Random) -> Message:
    """The message with an attribute left out, or of another type, or with other points."""
    attributes: dict[str, Any] = dict(message)
    name = random.choice(sorted(attributes))
    value = attributes[name]
    what = random.randrange(4)
    if isinstance(value, Points) and what:
        axes = [f"{axis}x" if random.random() < 0.3 else axis for axis in value.axes]
        rows = [[None if random.random() < 0.2 else one for one in row] for row in value.rows]
        attributes[name] = Points.of(axes, rows, pairs=value.pairs)
    elif what == 0:
        del attributes[name]
    else:
        attributes[name] = random.choice([None, "x", 5, 1.5, b"", Points((), ()), Points(("#r",), ((None,),))])
    if random.random() < 0.2:
        attributes[random.choice(["+R", "-X", "~S", "+", "#forms"])] = random.choice([5, Points(("#r",), ((1,),))])
    return Message(attributes)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_damaged_messages_are_refused_and_change_nothing(scheme: str) -> None:
    random = Random(scheme)
    client, messages = story(scheme)
    refused = 0
    for message in messages:
        for _ in range(6):
            before = state(client)
            try:
                if client.receive(damaged(message, random)):
                    # The changed message was valid, too: begin again from the current state.
                    client._tables = {t: dict(rows) for t, rows in before[0].items()}
                    client.filters, client._forms = before[2:]
                    client._rows = None
                    continue
            except MessageError:
                refused += 1
            assert state(client) == before
        client.receive(message)
    assert refused > 5


def test_forms_must_be_those_of_the_query() -> None:
    client, _ = story("ref-sj-clu+")
    wrong: list[list[tuple[Any, ...]]] = [
        [(1, "R", 0, "c")],
        [(1, "R", 0, "c"), (1, "S", 0, "a"), (3, "T", 1, "c")],
        [(1, "R", 1, "c"), (2, "S", 0, "a"), (3, "T", 1, "c")],
        [(1, "R", 0, "d"), (2, "S", 0, "a"), (3, "T", 1, "c")],
        [("x", "R", 0, "c"), (2, "S", 0, "a"), (3, "T", 1, "c")],
    ]
    for rows in wrong:
        before = state(client)
        with pytest.raises(MessageError):
            client.receive(Message({"#to": 1, "#forms": Points.of(["number", "table", "edge", "axes"], rows)}))
        assert state(client) == before
