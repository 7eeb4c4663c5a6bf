"""Guards against the plain definition: a tenant gets what matches both its subscription and the guard in force."""

import json
import random
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathcast.broker import Broker, BrokerSettings, Publication, add_token
from pathcast.broker.settings.broker_sections import TokensSection
from pathcast.broker_log import BrokerState, GuardSpans, TenantRecord, guard_at, pieces, since, with_guard
from pathcast.log import SqliteLog
from pathcast.patterns import parse

from .broker_world import TENANT, broker_in, delivered, matches, published, subscription
from .served_broker import served

XPATHS = ["//a", "//b", "/r/a", "//a[@x = '1']", "//a[b]", "//*[@x]", "//c//a", "//r[not(b)]", "//r"]


def guard(xpath: str | None, begin: int | None = None, tenant: str = TENANT) -> TenantRecord:
    return TenantRecord(tenant, xpath, None if xpath is None else str(parse(xpath)), {}, begin)


RECORDS = st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(1, 12), st.sampled_from("abc")), max_size=6)


@given(records=RECORDS, begin=st.integers(1, 14), length=st.integers(1, 14))
def test_the_guard_in_force_is_that_of_the_last_record_that_reaches_a_document(
    records: list[tuple[int, int | None, str]], begin: int, length: int
) -> None:
    spans: GuardSpans = ()
    sequence = 0
    in_force: dict[int, str | None] = {}
    for step, first, name in records:
        sequence += 1 + step
        record = guard(f"//{name}" if name != "c" else None, first)
        spans = with_guard(spans, sequence, record)
        for each in range(first or sequence, 40):
            in_force[each] = record.pattern
    assert [guard_at(spans, each) for each in range(1, 40)] == [in_force.get(each) for each in range(1, 40)]
    cut = list(pieces(spans, begin, begin + length))
    assert [each for first, last, _ in cut for each in range(first, last)] == list(range(begin, begin + length))
    for first, last, pattern in cut:
        assert {in_force.get(each) for each in range(first, last)} == {pattern}
    kept = since(spans, begin)
    assert [guard_at(kept, each) for each in range(begin, 40)] == [in_force.get(each) for each in range(begin, 40)]


@pytest.mark.parametrize("seed", range(4))
def test_a_guarded_tenant_gets_exactly_what_matches_subscription_and_guard(tmp_path: Path, seed: int) -> None:
    """Random documents, guards, changes and restarts against the plain definition."""
    random_ = random.Random(seed)
    documents: dict[int, tuple[str, str]] = {}
    guards: dict[int, str | None] = {}
    current: dict[str, list[tuple[int, str, tuple[str, ...]]]] = {}
    for _ in range(4):
        with broker_in(tmp_path) as broker:
            for _ in range(40):
                kind = random_.random()
                head = broker.log.head
                if kind < 0.2:
                    id, feeds = f"s{random_.randrange(6)}", random_.choice([(), ("f0",), ("f0", "f1")])
                    xpath = random_.choice(XPATHS)
                    begin = random_.choice([None, None, 1]) if id not in current else None
                    at = broker.subscribe(subscription(id, xpath, feeds, begin)).result()
                    current.setdefault(id, []).append((begin or at, xpath, feeds))
                elif kind < 0.35:
                    xpath_ = random_.choice([None, *XPATHS])
                    first = random_.choice([None, None, max(1, head - 5)])
                    at = broker.change([guard(xpath_, first)]).result()
                    for each in range(first or at, 2_000):
                        guards[each] = xpath_
                elif kind < 0.4:
                    broker.change([guard("//nothing", None, "another")]).result()
                else:
                    feed = f"f{random_.randrange(3)}"
                    sent = [_document(random_) for _ in range(random_.randrange(1, 5))]
                    documents |= dict(zip(published(broker, feed, *sent), ((feed, each) for each in sent), strict=True))
            for id, versions in current.items():
                expected = [
                    sequence
                    for sequence, (feed, document) in documents.items()
                    if _matches(versions, sequence, feed, document) and _visible(guards, sequence, document)
                ]
                assert delivered(broker, id) == expected, id
                assert delivered(broker, id, step=1) == expected, id
            for sequence, (feed, document) in documents.items():
                assert broker.is_visible(TENANT, feed, sequence) == _visible(guards, sequence, document)


def _matches(versions: list[tuple[int, str, tuple[str, ...]]], sequence: int, feed: str, document: str) -> bool:
    for begin, xpath, feeds in reversed(versions):
        if begin <= sequence:
            return (not feeds or feed in feeds) and matches(xpath, document)
    return False


def _visible(guards: dict[int, str | None], sequence: int, document: str) -> bool:
    xpath = guards.get(sequence)
    return xpath is None or matches(xpath, document)


def _document(random_: random.Random) -> str:
    def element(depth: int) -> str:
        name, attribute = random_.choice("abc"), random_.choice(["", " x='1'", " x='2'"])
        children = "".join(element(depth + 1) for _ in range(random_.randrange(3))) if depth < 3 else ""
        return f"<{name}{attribute}>{children}</{name}>"

    return f"<r>{element(0)}{element(1)}</r>"


def test_a_guard_takes_effect_where_it_stands_within_one_batch(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        futures, expected = [], []
        for number in range(40):
            broker.change([guard("//open" if number % 2 else None)])
            futures.append(broker.publish("news", [Publication(b"<a/>"), Publication(b"<a><open/></a>")]))
        for number, future in enumerate(futures):
            hidden, open_ = (each.sequence for each in future.result())  # type: ignore[union-attr]
            expected += [open_] if number % 2 else [hidden, open_]
        assert delivered(broker, "s") == expected


def test_a_guard_that_hides_thousands_of_matches_is_searched_in_large_steps(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        broker.change([guard("//open")]).result()
        for _ in range(30):
            published(broker, "news", *["<a/>"] * 100)
        (last,) = published(broker, "news", "<a><open/></a>")
        standing = broker.state.subscriptions[TENANT, "s"]
        position, steps = 0, 0
        while True:
            found = broker.deliveries(standing, position, 1, scan=False)
            position, steps = found.searched_to, steps + 1
            if found.sequences:
                break
        assert found.sequences == [last]
        assert steps <= 4


def test_a_guarded_tenant_never_pulls_acknowledges_or_reads_what_is_masked(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.change([guard("//open")]).result()
        broker.subscribe(subscription("s", "//*")).result()
        hidden, open_ = published(broker, "news", "<a/>", "<open/>")
        (letter,) = broker.publish("news", [Publication(b"<open>")], keep_invalid=True).result()
        pulled = broker.pull(TENANT, "s", 10, lease_seconds=60, in_flight=10)
        assert [each.entry.sequence for each in pulled.deliveries] == [open_]
        assert broker.acknowledge(TENANT, "s", [hidden])[1] == [hidden]
        assert not broker.is_visible(TENANT, "news", letter.sequence)  # type: ignore[union-attr]
        assert not broker.is_visible(TENANT, "news", broker.log.head + 1)


def test_guards_survive_a_checkpoint_and_the_end_of_what_they_masked(tmp_path: Path) -> None:
    state = BrokerState()
    state.apply(1, guard("//a"))
    state.apply(5, guard("//b"))
    restored = BrokerState.restored(5, state.checkpoint())
    assert restored.guards == state.guards
    assert restored.guard_patterns() == [str(parse("//a")), str(parse("//b"))]
    restored.forget_before(4)
    assert len(restored.guards[TENANT]) == 2
    restored.forget_before(5)
    assert restored.guard_patterns() == [str(parse("//b"))]
    old = BrokerState().checkpoint()
    assert BrokerState.restored(0, old).guards == {}


def test_a_guard_masks_every_answer_over_http(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    operator = {"authorization": f"Bearer {add_token(file, 'operators', 'root', ['*'])[0]}"}
    reader = {"authorization": f"Bearer {add_token(file, 'desk', 'ada', ['read:*', 'subscribe:*', 'publish:*'])[0]}"}
    with served(tmp_path / "log", BrokerSettings(tokens=TokensSection(file=str(file)))) as server:
        client = server.http
        wanted = {"guard": {"expression": "//p:open", "namespaces": {"p": "urn:p"}}}
        assert client.put("/v1/tenants/desk", json=wanted, headers=reader).status_code == 403
        assert client.get("/v1/tenants", headers=reader).status_code == 403
        assert client.put("/v1/tenants/desk", json={}, headers=operator).status_code == 400
        wrong = client.put("/v1/tenants/desk", json={"guard": {"expression": "//a["}}, headers=operator)
        assert wrong.status_code == 422
        shown = client.put("/v1/tenants/desk", json=wanted, headers=operator).json()
        assert shown == {"tenant": "desk", "guards": [{"from": 1, **wanted["guard"]}]}
        assert client.get("/v1/tenants", headers=operator).json() == {"tenants": [shown]}

        client.put("/v1/subscriptions/s", json={"xpath": "//*"}, headers=reader).raise_for_status()
        sent = ["<a>secret</a>", "<open xmlns='urn:p'>news</open>"]
        hidden, open_ = (
            client.post("/v1/feeds/news/documents", content=each, headers=operator).json()["sequence"] for each in sent
        )
        assert [client.get(f"/v1/documents/{each}", headers=reader).status_code for each in (hidden, open_)] == [
            404,
            200,
        ]
        assert client.get(f"/v1/documents/{hidden}", headers=operator).text == "<a>secret</a>"
        for _ in range(2):
            pulled = client.post("/v1/subscriptions/s:pull", headers=reader).json()["deliveries"]
            assert [each["sequence"] for each in pulled] == [open_]
            client.post("/v1/subscriptions/s:replay", json={"sequence": 1}, headers=reader).raise_for_status()
        for path in ("/v1/subscriptions/s/events", "/v1/subscribers/ada/events"):
            assert [each["sequence"] for each in _events(client, path, reader, 1)] == [open_]
        client.put("/v1/tenants/desk", json={"guard": None}, headers=operator).raise_for_status()
        last = client.post("/v1/feeds/news/documents", content="<b/>", headers=operator).json()["sequence"]
        assert [each["sequence"] for each in _events(client, path, reader, 2)] == [open_, last]


def _events(client: httpx.Client, path: str, headers: dict[str, str], count: int) -> list[dict[str, int]]:
    found: list[dict[str, int]] = []
    with client.stream("GET", path, headers={**headers, "last-event-id": "0"}) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
            if len(found) == count:
                break
    return found


def test_an_index_restarted_in_the_middle_of_the_log_masks_all_of_it(tmp_path: Path) -> None:
    """Without waiting for the rebuild, and after it."""
    with broker_in(tmp_path) as broker:
        broker.change([guard("//open")]).result()
        broker.subscribe(subscription("s", "//a")).result()
        sequences = published(broker, "news", *["<a/>", "<a><open/></a>"] * 50)
    broker = Broker(SqliteLog(tmp_path))
    try:
        assert delivered(broker, "s") == sequences[1::2]
        broker.rebuild.wait()
        assert delivered(broker, "s") == sequences[1::2]
        standing = broker.state.subscriptions[TENANT, "s"]
        assert broker.deliveries(standing, 0, 1_000, scan=False).searched_to == broker.matched_to
    finally:
        broker.close()
