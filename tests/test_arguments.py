"""Invalid arguments are rejected by name where they are given, not by a failure later."""

# Calls are wrong on purpose.
# mypy: disable-error-code="arg-type, call-overload, dict-item, list-item"

import pytest

from pathcast import LimitError, Matcher, MessageError, QueryError, SchemaError, Subscriptions, TopologyError
from pathcast.joins import Extraction, JoinServer, Schema, select
from pathcast.mediation import Mediator, infer_tree
from pathcast.messages import WireLimits
from pathcast.network import Axis, Crash, Faults, PayloadLimits, Reading, Space
from pathcast.routing import Overlay, Policy
from pathcast.roxsum import Broker, RoXSum
from pathcast.transmission import Topology

SCHEMA = Schema({"A": "k int, x int", "B": "k int, y int"}, joins=["A.k = B.k"])
AXIS = Axis("x", 0, 10)


def subscribed(**given):
    return JoinServer(SCHEMA).subscribe(select("A", "B", **given))


@pytest.mark.parametrize(
    ("make", "error", "reason"),
    [
        (lambda: Subscriptions(max_steps=0), ValueError, "max_steps must be a whole number of at least 1, got 0"),
        (lambda: Subscriptions(max_steps="9"), ValueError, "max_steps must be .*, got '9'"),
        (lambda: Subscriptions(first_id=0), ValueError, "first_id must be a whole number of at least 1, got 0"),
        (lambda: Subscriptions().compile(limits=5), TypeError, r"limits must be Limits\(…\) or None, got 5"),
        (lambda: Subscriptions().compile(limits={}), TypeError, r"limits must be Limits\(…\) or None, got \{\}"),
        (lambda: Subscriptions().compile(5), TypeError, "engine must be the name of an engine, .*, got 5"),
        (
            lambda: next(Subscriptions().compile().match_many([], threads=1.5)),
            ValueError,
            r"threads must be .*, got 1\.5",
        ),
        (lambda: Matcher(5), TypeError, "must be a Subscriptions object, got int"),
        (lambda: RoXSum(limits=5), TypeError, r"limits must be Limits\(…\) or None, got 5"),
        (lambda: Overlay.tree(2, limits=5), TypeError, r"limits must be Limits\(…\) or None, got 5"),
        (
            lambda: Mediator(infer_tree(["<a/>"])).compile(Subscriptions(), limits=5),
            TypeError,
            r"limits must be Limits\(…\) or None, got 5",
        ),
        (lambda: Broker(limits=5), TypeError, r"limits must be BatchLimits\(…\) or None, got 5"),
        (lambda: Broker(5), TypeError, r"targets must be Targets\(…\) or None, got 5"),
        (lambda: Broker(document_limits=5), TypeError, r"limits must be Limits\(…\) or None, got 5"),
        (lambda: Broker(level=99), ValueError, "level must be a zstd compression level, an int up to 22, got 99"),
        (lambda: RoXSum().encode(level="x"), ValueError, "level must be a zstd compression level, .*, got 'x'"),
        (lambda: WireLimits(values=-1), LimitError, r"WireLimits\(values=…\) must be .* got -1"),
        (lambda: Overlay(5), TypeError, "topology must be a Topology"),
        (lambda: Policy("nonsense"), ValueError, "invalid policy: forwarding 'nonsense'"),
        (lambda: Policy("L", "ds"), ValueError, "invalid policy"),
        (lambda: Policy("ES", "s", "d"), ValueError, "invalid policy"),
        (lambda: Policy("adaptive", "s", "sd"), ValueError, "invalid policy"),
        (lambda: Policy("L", early=0.5), ValueError, "invalid policy"),
        (lambda: Policy.read(5), TypeError, "policy must be a string"),
        (lambda: Space.of(AXIS, AXIS), MessageError, "duplicate axis 'x'"),
        (lambda: Space.of(5), MessageError, "the axes of a space must be Axis"),
        (lambda: Axis("x", "a", "b"), MessageError, "axis 'x' must have finite low < high, got low='a', high='b'"),
        (lambda: Axis("x", 0, 1, readings=[Reading("x")]), MessageError, "readings of axis 'x' must be a tuple"),
        (
            lambda: PayloadLimits(repository_entries=2.5),
            TopologyError,
            "repository_entries must be a whole number of at least 0",
        ),
        (lambda: Faults(drop="x"), TopologyError, "drop must be a probability of at least 0 and below 1, got 'x'"),
        (lambda: Faults(crashes=[5]), TopologyError, r"crashes must be a list of Crash\(…\), got \[5\]"),
        (lambda: Crash("r2", "x", None), TopologyError, "times of a crash must be at least 0 seconds"),
        (lambda: JoinServer(5), QueryError, "schema must be Schema"),
        (lambda: JoinServer(SCHEMA, axes=1.5), QueryError, "must be an int of at least 1"),
        (lambda: JoinServer(SCHEMA, filtered_by=5), QueryError, "filtered_by must map tables to neighbours"),
        (lambda: JoinServer(SCHEMA).drift(by="nonsense"), QueryError, "nonsense"),
        (
            lambda: JoinServer(SCHEMA).subscribe("select * from A", id="x"),
            QueryError,
            "id must be an int of at least 1",
        ),
        (lambda: subscribed(on="A.k = B.k"), QueryError, "on must be a list of joins"),
        (
            lambda: subscribed(on=["nonsense"]),
            QueryError,
            "invalid join in `on`: a join must read 'A.x = B.y' .* got 'nonsense'",
        ),
        (lambda: subscribed(on=["A.z = B.k"]), QueryError, "invalid join in `on`: table 'A' has no column 'z'"),
        (lambda: subscribed(where=5), QueryError, "where must map columns to ranges"),
        (lambda: select(3), QueryError, "one or more table names"),
        (lambda: Extraction("A", 5, {"k": "@k"}), SchemaError, "rows must be a string, got 5"),
        (lambda: Extraction("A", "//a", {"k": 5}), SchemaError, "'A': columns must map names to paths"),
        (lambda: Extraction("A", "//a", {"k": "@k"}, required="k"), SchemaError, "required must be a list of columns"),
    ],
)
def test_nonsense_is_refused_by_name(make, error, reason):
    with pytest.raises(error, match=reason):
        make()


def test_a_policy_made_by_hand_is_the_one_that_is_read():
    assert Policy("L", "st", "sd") == Policy.read("L+st-sd")
    assert Policy("adaptive", "s", "sd", 0.5) == Policy.read("adaptive(0.5)")
    assert Overlay(Topology.tree(2)).topology.is_tree
