"""Feeds with a mediator: documents are matched in the global schema, by the mappings in force at their sequences."""

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

import pathcast
from pathcast.broker import Accepted, Broker, Publication, Rejected, read_settings
from pathcast.broker.restart import restored
from pathcast.broker.server import broker_of
from pathcast.broker_log import BrokerState, FeedMediator, FeedRecord, TenantRecord
from pathcast.errors import PathcastError
from pathcast.log import SqliteLog
from pathcast.mediation import Mapping, Mediator
from pathcast.mediation.mappings import to_bytes

from ..log.nats_servers import NatsServer
from ..mediation.drawn import drawn_document, drawn_operators, drawn_tree
from .broker_process import BrokerProcess
from .broker_world import TENANT, broker_in, delivered, subscription
from .served_broker import Events, Served, served
from .test_jetstream_broker import settings_file

SHOP = "shop\n  item*\n    name #text\n    price #text"
ANNEX = """\
name = "annex"
schema = \"\"\"
shop
  item* @name
    cost #text
\"\"\"

[correspondence]
"shop/item/cost" = "shop/item/price"

[[operators]]
operator = "to-element"
node = "shop/item"
attribute = "name"

[[operators]]
operator = "rename"
node = "shop/item/cost"
name = "price"
"""
MAIN = """\
name = "main"
schema = \"\"\"
store
  item*
    name #text
    price #text
\"\"\"

[[operators]]
operator = "rename"
node = "store"
name = "shop"
"""
MEDIATOR = {"schema": SHOP, "mappings": {"annex": ANNEX, "main": MAIN}}
LAMP = "<shop><item name='lamp'><cost>7</cost></item></shop>"
TABLE = "<store><item><name>table</name><price>90</price></item></store>"
BATCH = {"content-type": "application/cloudevents-batch+json"}
WIDE = "a\n" + "\n".join(f"  b{at}" for at in range(3_000))
DEEP = "\n".join("  " * at + "shop" for at in range(800))


def put(server: Served, body: dict[str, Any], feed: str = "goods") -> httpx.Response:
    return server.http.put(f"/v1/feeds/{feed}", json=body)


def publish(server: Served, body: str, feed: str = "goods", **query: str) -> httpx.Response:
    return server.http.post(f"/v1/feeds/{feed}/documents", content=body, params=query)


def subscribe(server: Served, id: str, xpath: str, begin: int | str = "now") -> None:
    body = {"xpath": xpath, "feeds": ["goods"], "subscriber": "ada", "config": {"from": begin}}
    server.http.put(f"/v1/subscriptions/{id}", json=body).raise_for_status()


def pulled(server: Served, id: str) -> list[str]:
    """The bodies of all that is due; acknowledged."""
    found = server.http.post(f"/v1/subscriptions/{id}:pull", params={"limit": 100}).json()["deliveries"]
    server.http.post(f"/v1/subscriptions/{id}:ack", json={"sequences": [each["sequence"] for each in found]})
    return [each["body"] for each in found]


def test_documents_are_matched_in_the_global_schema_and_delivered_as_they_came(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        assert put(server, {"mediator": MEDIATOR}).json()["mediator"] == MEDIATOR
        subscribe(server, "cheap", "/shop/item[price < 10]/name")
        subscribe(server, "dear", "/shop/item[price > 10]/name")
        subscribe(server, "local", "//cost")
        events = Events(server, "/v1/subscriptions/cheap/events", 1)
        assert publish(server, LAMP, schema="annex").status_code == 202
        assert publish(server, TABLE, schema="main").status_code == 202
        event = json.loads(events.next_of_kind("document")["data"])
        assert (event["body"], event["schema"]) == (LAMP, "annex")
        events.close()
        assert pulled(server, "cheap") == [LAMP]
        assert pulled(server, "dear") == [TABLE]
        assert pulled(server, "local") == []
        assert server.http.get("/v1/feeds/goods").json()["mediator"] == MEDIATOR


def test_events_name_their_schemas(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        put(server, {"mediator": MEDIATOR})
        subscribe(server, "names", "/shop/item/name")
        events = [
            {"id": "1", "data": LAMP, "dataschema": "annex"},
            {"id": "2", "data": TABLE, "dataschema": "main"},
            {"id": "3", "data": TABLE, "dataschema": "annex"},
            {"id": "4", "data": LAMP, "dataschema": "cellar"},
            {"id": "5", "data": LAMP},
        ]
        answer = server.http.post("/v1/feeds/goods/documents", content=json.dumps(events), headers=BATCH).json()
        reasons = [each.get("error", {}).get("detail", "") for each in answer["results"]]
        assert reasons[:2] == ["", ""]
        assert "root element is 'store', but its schema has the root 'shop'" in reasons[2]
        assert "unknown schema 'cellar'; the feed has mappings for 'annex', 'main'" in reasons[3]
        assert "the document names no schema" in reasons[4]
        assert pulled(server, "names") == [LAMP, TABLE]
        header = {"ce-dataschema": "main", "ce-id": "6"}
        assert server.http.post("/v1/feeds/goods/documents", content=TABLE, headers=header).status_code == 202
        assert pulled(server, "names") == [TABLE]


def test_a_document_without_a_known_schema_is_rejected_or_kept_as_a_dead_letter(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        put(server, {"mediator": MEDIATOR})
        subscribe(server, "all", "//*")
        for query in ({}, {"schema": "cellar"}, {"schema": "main"}):
            answer = publish(server, LAMP, **query)
            assert answer.status_code == 422, answer.text
            kept = publish(server, LAMP, invalid="keep", **query)
            assert kept.status_code == 202
            assert kept.json()["error"]["reason"] == answer.json()["detail"]
        assert publish(server, LAMP, "plain", schema="annex").status_code == 422
        assert "the feed has no mediator" in publish(server, LAMP, "plain", schema="annex").json()["detail"]
        assert pulled(server, "all") == []


def test_the_only_mapping_needs_no_name_and_a_removed_mediator_leaves_documents_as_they_are(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        put(server, {"mediator": {"schema": SHOP, "mappings": {"annex": ANNEX}}})
        subscribe(server, "global", "//price")
        subscribe(server, "local", "//cost")
        publish(server, LAMP).raise_for_status()
        assert put(server, {"mediator": None}).json()["mediator"] is None
        publish(server, LAMP).raise_for_status()
        assert publish(server, LAMP, schema="annex").status_code == 422
        subscribe(server, "later", "//price", 1)
        assert pulled(server, "global") == [LAMP]
        assert pulled(server, "local") == [LAMP]
        assert pulled(server, "later") == [LAMP]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mappings": {"annex": "name = "}}, "invalid mapping 'annex': the mapping is not valid TOML"),
        ({"mappings": {"main": ANNEX}}, "invalid mapping 'main': its key 'name' is 'annex'"),
        (
            {"mappings": {"annex": ANNEX.replace("item/price", "item/x")}},
            "'shop/item/x', which the global schema lacks",
        ),
        ({"mappings": {"annex": ANNEX.replace("node = ", "knot = ")}}, "invalid mapping 'annex': invalid operator 1"),
        ({"schema": " x\ny z"}, "the mediator's global schema (`schema`) is malformed"),
        ({"mappings": {"annex": f'name = "annex"\nschema = """\n{WIDE}\n"""'}}, "map a part of the schema"),
    ],
)
def test_a_bad_mediator_is_rejected_and_changes_nothing(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    with served(tmp_path) as server:
        put(server, {"mediator": MEDIATOR})
        head = server.broker.log.head
        answer = put(server, {"mediator": MEDIATOR | change})
        assert answer.status_code == 422, answer.text
        assert reason in answer.json()["detail"]
        assert server.broker.log.head == head
        assert server.http.get("/v1/feeds/goods").json()["mediator"] == MEDIATOR


def test_a_deep_schema_is_possible(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        mapping = f'name = "deep"\nschema = """\n{DEEP}\n"""'
        put(server, {"mediator": {"schema": "shop", "mappings": {"deep": mapping}}}).raise_for_status()
        subscribe(server, "all", "//shop")
        publish(server, "<shop>" * 800 + "</shop>" * 800).raise_for_status()
        assert len(pulled(server, "all")) == 1


def test_the_number_of_mappings_and_of_mediators_is_bounded(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        many = {f"m{at}": MAIN.replace("main", f"m{at}") for at in range(101)}
        assert put(server, {"mediator": {"schema": SHOP, "mappings": many}}).status_code == 400
        assert put(server, {"mediator": {"schema": SHOP, "mappings": {}}}).status_code == 400
        for at in range(100):
            put(server, {"mediator": {"schema": f"{SHOP}\n  x{at}", "mappings": {"main": MAIN}}}).raise_for_status()
        assert put(server, {"mediator": {"schema": f"{SHOP}\n  x99", "mappings": {"main": MAIN}}}).status_code == 200
        assert put(server, {"mediator": MEDIATOR}).status_code == 409
        assert put(server, {}).status_code == 200


def test_explanations_are_those_of_the_rewritten_document(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        put(server, {"mediator": MEDIATOR})
        subscribe(server, "dear", "/shop/item[price > 10]")
        subscribe(server, "local", "//cost")
        subscribe(server, "names", "/shop/item/name")
        sequence = publish(server, LAMP, schema="annex").json()["sequence"]
        put(server, {})
        logged = server.http.post("/v1/explain", params={"sequence": sequence}).json()
        assert logged["schema"] == "annex"
        assert {each["id"]: each["matches"] for each in logged["subscriptions"]} == {
            "dear": False,
            "local": False,
            "names": True,
        }
        put(server, {"mediator": MEDIATOR})
        query = {"feed": "goods", "schema": "annex"}
        new = server.http.post("/v1/explain", params=query, content=LAMP).json()
        assert new["subscriptions"] == logged["subscriptions"]
        assert server.http.post("/v1/explain", params={"feed": "goods"}, content=LAMP).status_code == 422
        plain = server.http.post("/v1/explain", params={"feed": "plain"}, content=LAMP).json()
        assert "schema" not in plain


def test_guards_see_the_rewritten_document(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.change([FeedRecord("goods", mediator=FeedMediator(SHOP, {"annex": ANNEX, "main": MAIN}))]).result()
        broker.change([TenantRecord(TENANT, "//item[price < 10]", "//item[price < 10]")]).result()
        broker.subscribe(subscription("all", "//item")).result()
        (cheap,) = broker.publish("goods", [Publication(LAMP.encode())], schema="annex").result()
        (dear,) = broker.publish("goods", [Publication(TABLE.encode())], schema="main").result()
        assert isinstance(cheap, Accepted)
        assert isinstance(dear, Accepted)
        assert delivered(broker, "all") == [cheap.sequence]
        assert not broker.is_visible(TENANT, "goods", dear.sequence)
    with broker_in(tmp_path) as broker:
        assert delivered(broker, "all") == [cheap.sequence]
        broker.rebuild.wait()
        assert delivered(broker, "all") == [cheap.sequence]


class Published(NamedTuple):
    sequence: int
    body: bytes
    mediator: Mediator | None
    schema: str


class Publishers:
    """A feed whose mediator changes at random, publishers of its schemas, and what each subscription must get."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.trees = {name: drawn_tree(self.random) for name in ("annex", "main", "branch")}
        self.mediator: Mediator | None = None
        self.documents: list[Published] = []
        self.patterns: dict[str, tuple[str, int]] = {}
        self.found: dict[tuple[str, int], bool] = {}  # pattern and sequence

    def change_mediator(self, broker: Broker) -> None:
        names = self.random.sample(list(self.trees), self.random.randrange(4))
        self.mediator, record = None, FeedRecord("goods")
        if names:
            self.mediator = Mediator(self.trees[names[0]])
            for name in names:
                operators = tuple(drawn_operators(self.random, self.trees[name]))
                self.mediator.add(Mapping(name, self.trees[name], operators))
            texts = {name: self.mediator.mapping(name).write() for name in names}
            record = FeedRecord("goods", mediator=FeedMediator(str(self.trees[names[0]]), texts))
        broker.change([record]).result()

    def publish(self, broker: Broker) -> None:
        """Documents of several schemas in one batch; some name a schema that the mediator lacks."""
        names = [self.random.choice(list(self.trees)) for _ in range(self.random.randrange(1, 6))]
        bodies = [to_bytes(drawn_document(self.random, self.trees[name])) for name in names]
        given = [Publication(body, attributes={"dataschema": name}) for name, body in zip(names, bodies, strict=True)]
        for name, body, result in zip(names, bodies, broker.publish("goods", given).result(), strict=True):
            if self.mediator is None:
                assert isinstance(result, Accepted)
                self.documents.append(Published(result.sequence, body, None, name))
                continue
            try:
                self.mediator.compile(pathcast.Subscriptions()).match(body, name)
            except PathcastError:
                assert isinstance(result, Rejected)
            else:
                assert isinstance(result, Accepted), result
                self.documents.append(Published(result.sequence, body, self.mediator, name))

    def subscribe(self, broker: Broker) -> None:
        id, begin = f"s{len(self.patterns)}", self.random.choice([1, max(1, broker.log.first)])
        one, two, three = (self.random.choice("abcdefghABCNPQ") for _ in range(3))
        pattern = self.random.choice(
            [
                f"//{one}",
                f"//{one}[{two}]",
                f"//{one}//{two}",
                f"/*/{one}",
                f"//*[{one}][@x]",
                f"//{one}[.='t']/{three}",
            ]
        )
        broker.subscribe(subscription(id, pattern, begin=begin)).result()
        self.patterns[id] = pattern, begin

    def expected(self, id: str, first: int) -> list[int]:
        """By the matcher of `mediation`, each document with the mapping that it was published with."""
        pattern, begin = self.patterns[id]
        subscriptions = pathcast.Subscriptions()
        subscriptions.add(pattern)
        matchers: dict[Mediator | None, Any] = {None: subscriptions.compile()}
        for sequence, body, mediator, schema in self.documents:
            if (pattern, sequence) not in self.found:
                if mediator is not None and mediator not in matchers:
                    matchers[mediator] = mediator.compile(subscriptions)
                matcher = matchers[mediator]
                matches = matcher.match(body) if mediator is None else matcher.match(body, schema)
                self.found[pattern, sequence] = len(matches.ids) > 0
        sequences = [each.sequence for each in self.documents if each.sequence >= max(first, begin)]
        return [sequence for sequence in sequences if self.found[pattern, sequence]]

    def check(self, broker: Broker) -> int:
        first = broker.log.first
        total = 0
        for id in self.patterns:
            expected = self.expected(id, first)
            assert delivered(broker, id, first - 1) == expected, (id, self.patterns[id])
            total += len(expected)
        return total


@pytest.mark.parametrize("seed", range(6))
def test_each_document_is_matched_with_the_mappings_at_its_sequence(tmp_path: Path, seed: int) -> None:
    """Random mediators, documents and subscriptions from the past, across restarts, crashes and trims."""
    publishers = Publishers(seed)
    random_ = publishers.random
    total = 0
    for round_ in range(4):
        broker = Broker(SqliteLog(tmp_path, segment_bytes=1 << 13))
        try:
            if round_ % 2:
                broker.rebuild.wait()
                total += publishers.check(broker)
            for _ in range(30):
                random_.choice([publishers.change_mediator, *4 * [publishers.publish], publishers.subscribe])(broker)
            total += publishers.check(broker)
            broker.rebuild.wait()
            if round_ == 1:
                broker.trim(broker.log.head // 2)
                total += publishers.check(broker)
        finally:
            if round_ == 2:  # as a crash: no checkpoint
                broker._sequencer.stop()
                broker.rebuild.stop()
                broker.log.close()
            else:
                broker.close()
    assert total > 50


def test_mediators_survive_a_checkpoint_and_are_forgotten_with_their_documents() -> None:
    state = BrokerState()
    one, two = FeedMediator(SHOP, {"annex": ANNEX}), FeedMediator(SHOP, {"main": MAIN})
    for sequence, mediator in [(1, one), (5, two), (7, two), (9, None)]:
        state.apply(sequence, FeedRecord("goods", mediator=mediator))
    again = BrokerState.restored(9, state.checkpoint())
    assert again.mediators == state.mediators
    assert [span.begin for span in again.mediators["goods"]] == [1, 5, 9]
    again.forget_before(6)
    assert [span.begin for span in again.mediators["goods"]] == [5, 9]
    again.forget_before(9)
    assert again.mediators == {}
    assert again.mediator_of("goods") is None


def test_a_deleted_feed_has_no_mediator(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        put(server, {"mediator": MEDIATOR})
        publish(server, LAMP, schema="annex").raise_for_status()
        server.http.delete("/v1/feeds/goods").raise_for_status()
        publish(server, LAMP).raise_for_status()
        subscribe(server, "local", "//cost", 1)
        subscribe(server, "global", "//price", 1)
        assert pulled(server, "local") == [LAMP]
        assert pulled(server, "global") == []


@pytest.mark.slow
def test_a_killed_broker_knows_its_mediators(tmp_path: Path) -> None:
    with (
        BrokerProcess(tmp_path / "data") as process,
        httpx.Client(base_url=process.address, timeout=60, trust_env=False) as http,
    ):
        documents = "/v1/feeds/goods/documents"
        http.put("/v1/feeds/goods", json={"mediator": MEDIATOR}).raise_for_status()
        first = http.post(documents, content=LAMP, params={"schema": "annex"}).json()["sequence"]
        http.put("/v1/feeds/goods", json={}).raise_for_status()
        http.post(documents, content=LAMP).raise_for_status()
        http.put("/v1/feeds/goods", json={"mediator": MEDIATOR}).raise_for_status()
        process.kill()
        process.start()
        last = http.post(documents, content=TABLE, params={"schema": "main"}).json()["sequence"]
        body = {"xpath": "//price", "feeds": ["goods"], "config": {"from": 1}}
        http.put("/v1/subscriptions/prices", json=body).raise_for_status()
        found = http.post("/v1/subscriptions/prices:pull", params={"limit": 10}).json()["deliveries"]
        assert [(each["sequence"], each["body"]) for each in found] == [(first, LAMP), (last, TABLE)]


@pytest.mark.slow
def test_the_broker_that_takes_over_a_jetstream_log_has_its_mediators(tmp_path: Path, nats_server: NatsServer) -> None:
    """Also if the mediator is larger than a message of NATS."""
    settings = read_settings(settings_file(tmp_path, nats_server.url, "mediators"), data=tmp_path / "data")
    comment = "#" + "x" * 400_000 + "\n"
    large = {"schema": SHOP, "mappings": {"annex": comment + ANNEX, "main": comment + MAIN}}
    with served(tmp_path, settings, broker_of(settings)) as before:
        put(before, {"mediator": large}).raise_for_status()
        publish(before, LAMP, schema="annex").raise_for_status()
    log = settings.opened_log()
    state = restored(log).state  # as of a standby, which then reads what follows
    log.close()
    assert state.mediator_of("goods") == FeedMediator(**large)  # type: ignore[arg-type]
    with served(tmp_path, settings, broker_of(settings)) as after:
        assert after.http.get("/v1/feeds/goods").json()["mediator"] == large
        publish(after, TABLE, schema="main").raise_for_status()
        subscribe(after, "prices", "//price", 1)
        assert pulled(after, "prices") == [LAMP, TABLE]
