# mypy: allow-untyped-defs, allow-untyped-calls
"""Shortest paths from one node over arrays: Dijkstra's algorithm with an indexed binary heap.

Paths are compared by cost, then by the number of links, then by the number of the lane, so that links without latency
do not make detours free, and the same graph gives the same paths everywhere.
"""

from pathcast.kernels import kernel, part


@part
def before(cost, hops, a, b):
    """Whether node a leaves the heap before node b."""
    if cost[a] != cost[b]:
        return cost[a] < cost[b]
    if hops[a] != hops[b]:
        return hops[a] < hops[b]
    return a < b


@part
def rise(heap, place, cost, hops, at):
    """Move the node at a heap position towards the top."""
    node = heap[at]
    while at > 0:
        above = (at - 1) >> 1
        if not before(cost, hops, node, heap[above]):
            break
        heap[at] = heap[above]
        place[heap[at]] = at
        at = above
    heap[at] = node
    place[node] = at


@part
def sink(heap, place, cost, hops, size):
    """Move the node at the top of the heap down to its position."""
    node = heap[0]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and before(cost, hops, heap[below + 1], heap[below]):
            below += 1
        if not before(cost, hops, heap[below], node):
            break
        heap[at] = heap[below]
        place[heap[at]] = at
        at = below
    heap[at] = node
    place[node] = at


@kernel(
    "int64(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_f8[::1], int64, f8[::1], i4[::1], i4[::1], i4[::1], i4[::1])",
    late=True,
)
def shortest_from(offsets, others, lanes, weights, source, cost, hops, came, heap, place):
    """Compute costs, numbers of links and last lanes of shortest paths; return the number of reached nodes.

    The caller fills all three with 'not reached'. `place` is -1 for a node that was never on the heap and -2 for a
    node that has left it.
    """
    cost[source] = 0.0
    hops[source] = 0
    heap[0] = source
    place[source] = 0
    size = 1
    reached = 0
    while size > 0:
        node = heap[0]
        place[node] = -2
        reached += 1
        size -= 1
        if size > 0:
            heap[0] = heap[size]
            sink(heap, place, cost, hops, size)
        for at in range(offsets[node], offsets[node + 1]):
            other = others[at]
            if place[other] == -2:
                continue
            through = cost[node] + weights[lanes[at] >> 1]
            links = hops[node] + 1
            if place[other] >= 0:
                if through > cost[other]:
                    continue
                if through == cost[other]:
                    if links > hops[other]:
                        continue
                    if links == hops[other] and lanes[at] >= came[other]:
                        continue
            else:
                heap[size] = other
                place[other] = size
                size += 1
            cost[other] = through
            hops[other] = links
            came[other] = lanes[at]
            rise(heap, place, cost, hops, place[other])
    return reached
