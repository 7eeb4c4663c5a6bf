"""Pattern nodes as objects: immutable, compared by value, and hashed without recursion."""

import copy
import gc
import os
import pickle
import subprocess
import sys
from operator import eq, ne

import pytest

from pathcast.patterns import parse
from pathcast.patterns.tree_pattern import Compare, Node, Pattern, conditions_in

EXPRESSION = "/a[@b = 'x'][contains(c/d, 'y')]//e[f or not(g)][/h > 5.0][starts-with(., 'z')]"


@pytest.mark.slow
def test_a_pattern_that_travels_is_found_where_it_arrives() -> None:
    """String hashes differ between processes, so a pickle must not contain them."""
    code = (
        "import pickle, sys; from pathcast.patterns import parse;"
        f"assert pickle.loads(sys.stdin.buffer.read()) in {{parse({EXPRESSION!r})}}"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    pickled = pickle.dumps(parse(EXPRESSION))
    subprocess.run([sys.executable, "-c", code], input=pickled, env=environment, check=True)


def test_a_node_does_not_change() -> None:
    node = Node("/", "a")
    with pytest.raises(AttributeError, match="immutable"):
        node.test = "b"  # type: ignore[misc]
    assert repr(node) == "Node(axis='/', test='a', conditions=())"
    text: object = "a"
    assert node == Node("/", "a", ()) and node != Node("//", "a") and node != text
    match Node("//", "b", (node,)):
        case Node(axis, test, conditions):
            assert (axis, test, conditions) == ("//", "b", (node,))


def test_copies_are_equal_and_have_the_same_hash() -> None:
    pattern = parse(EXPRESSION)
    for other in (copy.copy(pattern), copy.deepcopy(pattern), pickle.loads(pickle.dumps(pattern)), parse(EXPRESSION)):
        assert eq(other, pattern) and not ne(other, pattern)
        assert hash(other) == hash(pattern)
        assert repr(other) == repr(pattern)


def test_how_a_number_is_written_tells_no_two_comparisons_apart() -> None:
    one, other = Compare.with_number("=", 5.0, "5"), Compare.with_number("=", 5.0, "5.0")
    assert eq(one, other) and not ne(one, other) and hash(one) == hash(other)
    assert repr(one) == "Compare(operator='=', text='5', number=5.0, string=None)"
    for different in (Compare.with_number("<", 5.0, "5"), Compare.with_string("=", "5"), "5"):
        assert ne(one, different) and not eq(one, different)


def test_a_pattern_of_any_depth_can_be_hashed_and_freed() -> None:
    node = Node("/", "a")
    for _ in range(200_000):
        node = Node("/", "a", (node,))
    assert len({Pattern(node), Pattern(node)}) == 1


def test_the_garbage_collector_tracks_no_part_of_a_pattern() -> None:
    pattern = parse(EXPRESSION)
    assert pattern.root is not None
    parts = conditions_in(pattern.root)
    assert len({type(part) for part in parts}) == 7
    assert not any(map(gc.is_tracked, [pattern, *parts]))
