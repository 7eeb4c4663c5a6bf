"""All gates that a document's states open, for documents that need full verification.

A walk lists only the gates with waiting patterns (`candidate_search_and_verification.py`); patterns that joins decide
need their gates only for documents that joins cannot decide.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s
from pathcast.store import offsets_of

from ...arrays.ragged_arrays import gathered
from .lazy_determinisation import States


class OpenGates(NamedTuple):
    """The result of a walk for one index: the open gates of document `i` are `gates[offsets[i] : offsets[i + 1]]`.

    Only gates below `listed` are listed. `of` has the state of each element, -1 in documents without states.
    """

    offsets: Int64s
    gates: Int32s
    listed: int
    states: States
    of: Int32s

    def with_all(self, elements: Int64s, chosen: Int64s) -> "OpenGates":
        """With all gates that the chosen documents open; `elements` bounds each document's elements.

        Documents without states stay as they are: a simulation has listed all their gates.
        """
        automaton = self.states.automaton
        found = [self.gates[begin:end] for begin, end in pairwise(self.offsets.tolist())]
        for document in chosen.tolist():
            states = np.unique(self.of[elements[document] : elements[document + 1]]).astype(np.int64)
            if len(states) and states[0] >= 0:
                # The document node opens the gates of patterns that demand no element.
                _, more = gathered(automaton.gates_begin, automaton.gates, np.append(states, 0))
                found[document] = np.union1d(found[document], more).astype(np.int32)
        offsets = offsets_of([len(some) for some in found])
        return self._replace(offsets=offsets, gates=np.concatenate(found) if found else self.gates)
