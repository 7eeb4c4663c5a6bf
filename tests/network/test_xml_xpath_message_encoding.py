"""XML documents over a content network: patterns as filters compared with lxml, and both kinds of messages together."""

import random

import pytest
from lxml import etree

from pathcast.errors import LimitError, MessageError
from pathcast.messages import In, Interval, Message
from pathcast.network import ContentNetwork, document_message, pattern_filter
from pathcast.transmission import Topology
from tests import oracle

NAMES = "abc"


def draw_document(draw, depth=0):
    attributes = "".join(
        f' {name}="{draw.choice(["1", "2", "5.5", "x"])}"' for name in ("m", "n") if draw.random() < 0.4
    )
    below = "".join(draw_document(draw, depth + 1) for _ in range(draw.randrange(3))) if depth < 4 else ""
    name = draw.choice(NAMES)
    return f"<{name}{attributes}>{below}</{name}>"


def draw_pattern(draw):
    steps = []
    for _ in range(draw.randrange(1, 4)):
        step = draw.choice([*NAMES, "*"])
        if draw.random() < 0.3:
            test = draw.choice(["", " = 1", " > 1", " <= 5", " = 'x'"])
            step += f"[@{draw.choice('mn')}{test}]"
        steps.append(draw.choice(["/", "//"]) + step)
    return "".join(steps)


def test_a_pattern_as_a_filter_matches_what_lxml_matches():
    draw = random.Random(9)
    tried = 0
    patterns = [draw_pattern(draw) for _ in range(250)]
    filters = []
    for pattern in patterns:
        try:
            filters.append((pattern, pattern_filter(pattern)))
        except MessageError:
            continue
    assert len(filters) > 150
    for _ in range(25):
        document = draw_document(draw)
        message, tree = document_message(document), etree.ElementTree(etree.fromstring(document))
        for pattern, one in filters:
            tried += 1
            assert one.matches(message) == bool(tree.xpath(f"boolean({pattern})")), (pattern, document)
    assert tried > 3_000


def test_messages_of_tables_and_documents_pass_over_one_network(tmp_path):
    network = ContentNetwork.build(Topology.tree(4), payloads=True)
    network.register("r9", pattern_filter("/news//title"), "ada")
    network.register("r12", pattern_filter("/news/sport[@kind = 'ball']"), "bob")
    network.register("r9", In("per", Interval(45, 70)), "cy")
    news = "<news><head><title>Rain</title></head></news>"
    sport = "<news><sport kind='ball'><title>Goal</title></sport></news>"
    file = tmp_path / "news.xml"
    file.write_text(news)
    assert document_message(file) == document_message(news) == document_message(news.encode())
    assert network.publish(document_message(file)).subscribers == ["ada"]
    assert network.publish(Message({"per": 50})).subscribers == ["cy"]
    first = network.publish(document_message(sport))
    assert first.subscribers == ["ada", "bob"]
    assert [one.message["document"] for one in first.deliveries] == [sport.encode()] * 2
    again = network.publish(document_message(sport))
    assert again.subscribers == ["ada", "bob"]
    assert again.bytes < first.bytes
    assert oracle.matches("/news//title", news.encode())


@pytest.mark.slow
def test_patterns_and_documents_that_do_not_fit_are_refused_by_name():
    for pattern in ("/a[b]/c", "/a[. = 'x']", "/a[@m != 1]", "/a[not(b)]"):
        with pytest.raises(MessageError, match="a content network does not support"):
            pattern_filter(pattern)
    with pytest.raises(LimitError, match="because its paths repeat tags often"):
        document_message("<a>" * 16 + "</a>" * 16)
