"""Simulation of single documents, for documents whose states do not fit into memory."""

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.errors import LimitError
from pathcast.kernels import Int32s

from .lazy_determinisation import States
from .lazy_determinisation_kernels import DEEP_STEPS
from .nfa_fallback_simulation_kernels import FINISHED, P_COUNTS, P_GATES, TOO_MUCH, Simulation, simulate


def simulated(
    states: States, batch: DocumentBatch, document: int, symbols: Int32s, gate_count: int, work: int, memory: int
) -> tuple[Int32s, Int32s]:
    """The entries and gates of one document, for the paths of `states`.

    `LimitError` if it takes more than `work` look-ups or `memory` bytes.
    """
    begin, end = batch.offsets[document : document + 2].tolist()
    depth = int(batch.depth[begin:end].max(initial=0))
    nodes = len(states.below)
    marks = np.zeros(states.entry_limit + 63 >> 6, dtype=np.uint64)
    gates = np.empty(gate_count, dtype=np.int32)
    is_open = np.zeros(gate_count, dtype=np.bool_)
    simulation = Simulation(
        progress=np.zeros(P_COUNTS, dtype=np.int64),
        stack=np.zeros(1 << 14, dtype=np.int32),
        stack_begin=np.zeros(depth + 2, dtype=np.int64),
        deep=np.zeros(nodes + 1, dtype=np.int32),
        deep_end=np.zeros(depth + 2, dtype=np.int64),
        is_deep=np.zeros(nodes, dtype=np.bool_),
    )
    simulation.stack_begin[1] = 1  # the document node alone
    if states.below[0] & DEEP_STEPS:
        simulation.deep_end[0], simulation.is_deep[0] = 1, True
    while True:
        why = simulate(batch.elements, begin, end, symbols, states.trie, work, simulation, marks, is_open, gates)
        if why == FINISHED:
            break
        if why == TOO_MUCH:
            raise LimitError(
                f"the document needs more than {work:,} look-ups in the subscriptions' paths"
                " (raise the limit with Limits(work=…))"
            )
        stack = simulation.stack
        if 2 * stack.nbytes > memory:
            raise LimitError(
                f"matching the document needs more than {memory:,} bytes"
                " (remove subscriptions with many '//' and '*', or nest elements less deeply)"
            )
        simulation = simulation._replace(stack=np.concatenate([stack, np.zeros_like(stack)]))
    entries = np.flatnonzero(np.unpackbits(marks.view(np.uint8), bitorder="little")).astype(np.int32)
    # The document node itself, before any element.
    entry, gate = int(states.trie.entry[0]), int(states.gate_of_node[0])
    if 0 <= entry < states.entry_limit:
        entries = np.union1d(entries, np.array([entry], dtype=np.int32))
    opened = gates[: simulation.progress[P_GATES]]
    return entries, opened if gate < 0 else np.append(opened, np.int32(gate))
