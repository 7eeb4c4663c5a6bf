"""The inputs of the demo: five schemas with the same content, drawn from one seed."""

from lxml import etree

from pathcast.cli.demo.delivery_check import compare
from pathcast.cli.demo.pipeline_inputs import damage, overlay_of, routers
from pathcast.cli.demo.publisher_schemas import PUBLISHERS, Report, Review, Stock, mediator, write
from pathcast.cli.demo.synthetic_market import DAMAGED_EVERY, FIRST_DAMAGED, Market


def facts(xml: bytes) -> list[tuple]:
    """The content of a report in the global schema, independent of the order of elements."""
    root = etree.fromstring(xml)
    named = {element.getparent().tag + "/" + element.tag for element in root.iter() if element.getparent() is not None}
    values = [
        tuple(sorted((element.tag, element.text) for element in each.iter() if element.text))
        for each in root.iterchildren("stock", "review")
    ]
    return [root.findtext("publisher"), sorted(named - {"report/market"}), *values]


def test_every_publisher_says_the_same_in_its_own_schema():
    known = mediator()
    stocks = (Stock("ABC1", "A & B", "food", 12.5, None), Stock("XYZ2", "X <Y>", "steel", 7.0, 3.1))
    reviews = (Review("ABC1", 9.5, "buy"), Review("XYZ2", 1.0, 'sell "now"'))
    for report in (
        Report(1, "all", stocks=stocks),
        Report(2, "all", (), reviews, "Ada King", "Elm & Co"),
        *map(Market(3).report, range(1, 30)),
    ):
        expected = facts(write("exchange", report))
        for publisher in PUBLISHERS:
            assert facts(known.rewrite(write(publisher, report), publisher)) == expected, publisher


def test_the_same_seed_gives_the_same_market():
    ours, same, other = Market(1), Market(1), Market(2)
    assert [ours.report(number) for number in range(20)] == [same.report(number) for number in range(20)]
    assert ours.report(7) != other.report(7)
    assert ours.queries(5) == same.queries(5) != other.queries(5)
    wanted = list(ours.subscriptions(routers(), 40, 20))
    assert wanted == list(same.subscriptions(routers(), 40, 20))
    assert len({subscriber for *_, subscriber in wanted}) == 20
    assert len({(router, subscriber) for router, _, subscriber in wanted}) == 20


def test_its_overlay_has_fifteen_routers():
    overlay = overlay_of(Market().subscriptions(routers(), 30, 15))
    assert (len(overlay), overlay.routers) == (30, routers())
    assert len(overlay.routers) == 15


def test_one_document_in_so_many_is_damaged():
    cut = [number for number in range(1, 2 * DAMAGED_EVERY) if damage(number, b"<a></a>") != b"<a></a>"]
    assert cut == [FIRST_DAMAGED, FIRST_DAMAGED + DAMAGED_EVERY]


def test_what_comes_thrice_came_twice_too_often():
    from collections import Counter

    line = compare("x", Counter("aabc"), Counter("aaaabbd"))
    assert (line.expected, line.found, line.lost, line.twice, line.wrong) == (4, 7, 1, 3, 1)
    assert not line.right
