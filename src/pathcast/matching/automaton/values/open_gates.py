"""Open gates: of documents whose patterns are all verified, every gate that the states of their elements open.

A walk tells the gates alone that somebody waits behind (`candidate_matcher.py`); patterns that joins decide need theirs
only when joins can't decide for a document.
"""

from itertools import pairwise

import numpy as np

from pathcast.kernels import Int32s, Int64s

from ...arrays.ragged_arrays import gathered
from ..paths.states_kernels import Automaton


def all_open(
    elements: Int64s, gate_offsets: Int64s, gates: Int32s, chosen: Int64s, of: Int32s, automaton: Automaton
) -> tuple[Int64s, Int32s]:
    """Offsets and gates, with all that the chosen documents open; `elements` bounds each document's.

    Documents without states (-1 in `of`) stay as they are: a simulation has told all of theirs.
    """
    found = [gates[begin:end] for begin, end in pairwise(gate_offsets.tolist())]
    for document in chosen.tolist():
        states = np.unique(of[elements[document] : elements[document + 1]]).astype(np.int64)
        if len(states) and states[0] >= 0:
            # The document node opens the gates of patterns that ask for no element.
            _, more = gathered(automaton.gates_begin, automaton.gates, np.append(states, 0))
            found[document] = np.union1d(found[document], more).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(some) for some in found])]).astype(np.int64)
    return offsets, np.concatenate(found) if found else gates
