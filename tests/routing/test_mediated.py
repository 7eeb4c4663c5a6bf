"""Documents in publishers' schemas in an overlay: matched in the global schema, delivered as they were sent."""

import hashlib
import hmac

import pytest

import pathcast
from pathcast.errors import MappingError
from pathcast.mediation import Mediator, Rename
from pathcast.routing import Overlay
from pathcast.transmission import Topology
from tests.mediation.test_operator_derivation import DOCUMENT, GLOBAL, LOCAL, SAME

WANTED = {
    "r2": ["//instructor/assistant", "/university/article[year = 2]/author[born = 1]", "//teacher"],
    "r3": ["//course[code = 'c1']/schedule[time = 9]", "//course/time", "//faculty[@label = 'F']"],
}
GET_IT = {("r2", "r2-0"), ("r2", "r2-1"), ("r3", "r3-0"), ("r3", "r3-2")}
POLICIES = ["L", "L+s", "L-sd", "L+sd-sd"]


def mediator() -> Mediator:
    made = Mediator(GLOBAL)
    made.register("u", LOCAL, correspondence=SAME)
    return made


@pytest.fixture(scope="module")
def overlay() -> Overlay:
    made = Overlay(Topology.chain(3), mediator=mediator())
    for router, xpaths in WANTED.items():
        made.subscribe_many(router, xpaths, [f"{router}-{number}" for number in range(len(xpaths))])
    made.advertise()
    return made


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("with_mapping", [True, False])
def test_subscribers_get_documents_of_another_schema(overlay: Overlay, policy: str, with_mapping: bool) -> None:
    for engine in ("automaton", "xtrie"):
        report = overlay.publish(DOCUMENT, policy, engine, schema="u", with_mapping=with_mapping)
        assert {(each.router, each.subscriber) for each in report.deliveries} == GET_IT


def test_deliveries_are_those_of_one_matcher(overlay: Overlay) -> None:
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many([xpath for xpaths in WANTED.values() for xpath in xpaths])
    assert overlay.mediator is not None
    assert overlay.mediator.compile(subscriptions).match(DOCUMENT, "u").ids.tolist() == [1, 2, 4, 6]


@pytest.mark.parametrize("with_mapping", [True, False])
def test_a_detached_signature_holds_where_the_document_is_delivered(overlay: Overlay, with_mapping: bool) -> None:
    document = DOCUMENT.replace("<course", "<!-- as it was -->\r\n<course").encode()
    signature = hmac.new(b"key", document, hashlib.sha256).digest()
    delivered: list[bytes] = []
    overlay.publish(
        document, "L", schema="u", with_mapping=with_mapping, receive=lambda _, data: delivered.append(data)
    )
    assert len(delivered) == len(GET_IT)
    assert all(hmac.compare_digest(hmac.new(b"key", data, hashlib.sha256).digest(), signature) for data in delivered)


def test_a_mapping_costs_bytes_on_the_links_and_a_reference_hardly_any(overlay: Overlay) -> None:
    plain = overlay.publish(DOCUMENT, "L").per_router["r1"].received
    reference = overlay.publish(DOCUMENT, "L", schema="u", with_mapping=False).per_router["r1"].received
    header = overlay.publish(DOCUMENT, "L", schema="u").per_router["r1"].received
    assert plain < reference < plain + 60 < header


def test_a_router_with_another_mapping_of_that_version_refuses_the_document(overlay: Overlay) -> None:
    mapping = mediator().mapping("u")
    other = Mediator(GLOBAL)
    other.add(mapping.edited([*mapping.operators, Rename("university/course", "lesson")]).numbered(1))
    held = overlay.router("r2").mediated.mediator
    try:
        for wrong, reason in (
            (other, "the registered mapping of schema 'u', version 1, differs from the sender's"),
            (Mediator(GLOBAL), "schema 'u' is not registered"),
            (None, "as mediator="),
        ):
            overlay.router("r2").mediated.mediator = wrong
            with pytest.raises(MappingError, match=reason):
                overlay.publish(DOCUMENT, "L", schema="u", with_mapping=False)
            report = overlay.publish(DOCUMENT, "L", schema="u")
            assert len(report.deliveries) == len(GET_IT), "its own mapping came along"
    finally:
        overlay.router("r2").mediated.mediator = held


def test_what_can_t_be_published_is_said(overlay: Overlay) -> None:
    with pytest.raises(MappingError, match="schema 'v' is not registered \\(registered schemas: u"):
        overlay.publish(DOCUMENT, "L", schema="v")
    with pytest.raises(MappingError, match="the document's root element is 'other'"):
        overlay.publish("<other/>", "L", schema="u")
    with pytest.raises(pathcast.DocumentError):
        overlay.publish("<university", "L", schema="u")
    with pytest.raises(ValueError, match="policy 'L[+]t' does not support documents of another schema"):
        overlay.publish(DOCUMENT, "L+t", schema="u")
    with pytest.raises(MappingError, match="needs a mediator"):
        Overlay(Topology.chain(2)).publish(DOCUMENT, "L", schema="u")
