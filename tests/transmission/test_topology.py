"""Shapes have the right nodes and links, determined by a seed; an invalid topology is rejected with a reason."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast import TopologyError
from pathcast.transmission import Topology, to_graph


def test_a_tree_is_named_level_by_level():
    tree = Topology.tree(4, 2)
    assert len(tree) == 15 and tree.root == "r1" and tree.is_tree
    assert tree.neighbours("r3") == ["r1", "r6", "r7"]
    rooted = tree.rooted()
    assert rooted.depth.tolist() == [0, 1, 1, 2, 2, 2, 2] + [3] * 8
    assert rooted.path(tree.number("r11")) == [tree.number(name) for name in ("r1", "r2", "r5", "r11")]
    assert [tree.nodes[number] for number in rooted.order] == list(tree.nodes)


def test_a_chain_a_star_and_a_single_node():
    assert Topology.chain(4).neighbours("r2") == ["r1", "r3"]
    assert Topology.star(4).degree("r1") == 3
    single = Topology.tree(1, 2)
    assert single.is_tree and single.neighbours("r1") == [] and single.rooted().children == ((),)


def test_time_is_latency_and_bytes_by_bandwidth():
    tree = Topology.tree(2, 2, bandwidth="1MB/s", latency="5ms")
    assert tree.time("r2", "r1", 1000) == pytest.approx(0.006)
    assert tree.link("r1", "r2").time(1000) == pytest.approx(0.006)
    assert tree.with_speed(bandwidth="unlimited").time("r1", "r2", 10**9) == 0.005
    assert str(tree.link("r1", "r2")) == "r1 – r2 (1 MB/s, 5 ms)"


@pytest.mark.parametrize("make", [Topology.random, Topology.internet])
def test_a_seed_gives_the_same_graph_and_another_seed_another(make):
    one, same, other = make(300, seed=5), make(300, seed=5), make(300, seed=6)
    assert np.array_equal(one.ends, same.ends) and np.array_equal(one.latency, same.latency)
    assert not np.array_equal(one.ends, other.ends)
    assert one.is_connected and other.is_connected


@pytest.mark.parametrize(("nodes", "degree"), [(1, 0), (2, 1), (50, 2), (50, 3.5), (12, 11), (12, 9)])
def test_a_random_graph_has_the_degree_that_was_asked_for(nodes, degree):
    graph = Topology.random(nodes, degree=degree, seed=1)
    assert len(graph.ends) == max(nodes - 1, round(nodes * degree / 2)) and graph.is_connected


def test_an_internet_has_few_nodes_of_many_links_and_many_of_few():
    graph = Topology.internet(5000, seed=2)
    degrees = np.diff(graph.adjacency[0])
    assert np.mean(degrees == 1) > 0.2 and degrees.max() > 40 * np.median(degrees)
    assert graph.latency.min() >= 0.001 and graph.latency.max() <= 0.041


def test_a_graph_comes_with_the_speeds_of_its_edges_and_goes_back():
    graph = nx.Graph()
    graph.add_edge("london", "paris", bandwidth="1GB/s", latency="4ms")
    graph.add_edge("paris", 7)
    topology = Topology.from_graph(graph, bandwidth="1MB/s", root="paris")
    assert topology.nodes == ("london", "paris", "7") and topology.root == "paris"
    assert topology.link("paris", "london").bandwidth == 1e9 and topology.link("7", "paris").bandwidth == 1e6
    back = to_graph(topology)
    assert back.edges["london", "paris"] == {"bandwidth": 1e9, "latency": 0.004}
    again = Topology.from_graph(back)
    assert np.array_equal(again.ends, topology.ends) and np.array_equal(again.bandwidth, topology.bandwidth)


def test_a_directed_graph_and_a_multigraph_give_one_link_a_pair():
    assert len(Topology.from_graph(nx.DiGraph([(1, 2), (2, 1), (2, 3)])).ends) == 2
    assert len(Topology.from_graph(nx.MultiGraph([(1, 2), (1, 2), (2, 1)])).ends) == 1


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Topology.tree(0, 2), "levels must be a whole number of at least 1, got 0"),
        (lambda: Topology.tree(60, 3), "at most"),
        (lambda: Topology.chain(2.5), "nodes must be a whole number of at least 1, got 2.5"),  # type: ignore[arg-type]
        (lambda: Topology.random(4, degree=9), "degree must be from 0 to 3 for 4 nodes, got 9"),
        (lambda: Topology(["a", "a"], []), "two nodes are named 'a'"),
        (lambda: Topology([], []), "the topology has no nodes"),
        (lambda: Topology(["a", "b"], [(0, 2)]), "node number 2"),
        (lambda: Topology(["a", "b"], [(0, 0)]), "'a' has a link to itself"),
        (lambda: Topology(["a", "b"], [(0, 1), (1, 0)]), "'a' and 'b' are linked twice"),
        (lambda: Topology(["a", "b"], [(0, 1)], bandwidth=[1, 2]), "bandwidth has 2 values for 1 links"),
        (lambda: Topology.tree(3).number("r77"), "unknown node 'r77'; did you mean 'r7'"),
        (lambda: Topology.tree(3).number("x"), "unknown node 'x'; the nodes are r1, r2, r3, r4, r5, …"),
        (lambda: Topology.tree(3).number(7), "from 0 to 6, got 7"),
        (lambda: Topology.tree(3).link("r2", "r3"), "no link between 'r2' and 'r3'"),
        (lambda: Topology(["a", "b", "c"], [(0, 1)]).rooted(), "'c' cannot be reached from 'a'"),
        (lambda: Topology.from_graph([1]), "must be a networkx graph such as nx.Graph\\(\\), got list"),
        (lambda: Topology.from_graph(nx.path_graph(3), root=9), "root 9 is not a node"),
        (lambda: Topology.from_graph(nx.Graph([(1, 2, {"bandwidth": "x"})])), "invalid edge 1 – 2: invalid bandwidth"),
        (lambda: Topology.star(3).sample(4), "count must be from 1 to the number of nodes, 3, got 4"),
        (lambda: Topology.star(3).shortest_paths("bytes"), "by must be 'latency' or 'hops', got 'bytes'"),
    ],
)
def test_what_is_no_topology_is_refused(make, said):
    with pytest.raises(TopologyError, match=said):
        make()


def test_a_cycle_is_refused_by_its_names_and_broken_by_a_spanning_tree():
    graph = Topology(["a", "b", "c", "d"], [(0, 1), (1, 2), (2, 3), (3, 1)], latency=["1ms", "1ms", "5ms", "1ms"])
    with pytest.raises(TopologyError, match=r"a cycle \(b – (c – d|d – c) – b\); use .spanning_tree\(\)"):
        graph.rooted()
    tree = graph.spanning_tree()
    assert tree.is_tree and not tree.linked("c", "d") and tree.nodes == graph.nodes


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.floats(0, 6), st.integers(0, 10**6), st.booleans())
def test_shortest_paths_are_those_of_networkx(nodes, degree, seed, flat):
    graph = Topology.random(nodes, degree=min(degree, nodes - 1), seed=seed)
    if not flat:
        graph = graph.with_speed(latency=np.random.default_rng(seed).integers(0, 4, len(graph.ends)).astype(float))
    paths, theirs = graph.shortest_paths(), to_graph(graph)
    source = graph.nodes[seed % nodes]
    lengths = nx.single_source_dijkstra_path_length(theirs, source, weight="latency")
    fewest = nx.single_source_shortest_path_length(theirs, source)
    hops = graph.shortest_paths("hops")
    for target in graph.nodes:
        number = graph.number(target)
        assert paths.latencies_from(source)[number] == lengths[target]
        path = paths.path(source, target)
        assert nx.path_weight(theirs, path, "latency") == lengths[target] and path[0] == source and path[-1] == target
        assert len(path) - 1 == paths.hops(source, target) == paths.hops_from(source)[number]
        assert hops.hops(source, target) == fewest[target]
        assert hops.latencies_from(source)[number] == nx.path_weight(theirs, hops.path(source, target), "latency")


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.floats(0, 6), st.integers(0, 10**6))
def test_a_spanning_tree_keeps_shortest_paths_from_its_root(nodes, degree, seed):
    graph = Topology.random(nodes, degree=min(degree, nodes - 1), seed=seed)
    graph = graph.with_speed(latency=np.random.default_rng(seed).random(len(graph.ends)))
    root = graph.nodes[-1]
    tree = graph.spanning_tree(root)
    assert tree.is_tree and tree.root == root
    assert tree.shortest_paths().latencies_from(root) == pytest.approx(graph.shortest_paths().latencies_from(root))


def test_trees_of_paths_that_were_dropped_come_back_the_same():
    from pathcast.transmission import ShortestPaths

    graph = Topology.internet(400, seed=3)
    few, many = ShortestPaths(graph, kept=1), ShortestPaths(graph)
    for source, target in [(0, 300), (7, 1), (0, 299), (7, 2), (0, 300)]:
        assert few.lanes(source, target) == many.lanes(source, target)
    assert few.time(0, 300, 10_000) == pytest.approx(
        sum(graph.link_at(lane >> 1).time(10_000) for lane in few.lanes(0, 300))
    )


def test_where_no_path_leads_that_is_said():
    apart = Topology(["a", "b", "c"], [(0, 1)])
    assert not apart.is_connected and np.isinf(apart.shortest_paths().latencies_from("a")[2])
    with pytest.raises(TopologyError, match="no path from 'a' to 'c'"):
        apart.shortest_paths().path("a", "c")
