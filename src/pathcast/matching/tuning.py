"""Tuning: the thresholds at which matching changes its method, never its answer.

Each default was measured; users have no reason to change one. Tests lower them, so that a few patterns and documents go
through every change that otherwise takes thousands. `Subscriptions(tuning=…)` passes them to the table of patterns,
where all code reads them.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tuning:
    """Sizes and thresholds of matching.

    >>> from pathcast.matching import Tuning
    >>> pathcast.Subscriptions(tuning=Tuning(pending_trees=16)).table.tuning.pending_trees
    16
    """

    # The most bytes for states of label paths. Beyond that, states are dropped and computed again: a bound on the
    # memory that hostile documents can occupy.
    state_bytes: int = 512 << 20
    # The most words for the bits of pending paths, for all levels of a document, unless one document needs more.
    level_words: int = 1 << 22

    # Entries are grouped after documents have marked twice as many entries as states accept, and these at least; more
    # accepted entries than `grouped_at_once` are grouped in a background thread.
    fewest_marked: int = 1 << 14
    grouped_at_once: int = 1 << 19
    # Where documents share groups of entries, those of at least this many entries are shared, others written.
    shared_entries: int = 64

    # Pending paths are promoted when they have more bits than `pending_bits_per_root` times the square root of the
    # number of paths in the base, within these bounds; with twice as many the base is rebuilt at once.
    fewest_pending_bits: int = 1 << 10
    most_pending_bits: int = 1 << 13
    pending_bits_per_root: int = 26
    # Pending trees are promoted when there are more than this, or than one in `delta_trees_per_pending` of the delta's;
    # with `most_pending_trees` times as many the base is rebuilt at once.
    pending_trees: int = 256
    delta_trees_per_pending: int = 16
    most_pending_trees: int = 16
    # Trees that another process compiled go into the base at once if they are more than one in this many: as pending
    # trees they would need programs, which are built from objects.
    trees_per_merged: int = 8

    # Patterns re-select their access predicates after this many documents, and then whenever the documents have
    # doubled; more patterns than these do so in a background thread.
    first_selection: int = 256
    selection_in_background: int = 10_000

    # Buffers of the verifier, one set per thread: the initial number of cached sets of elements, of words of 64 bits
    # for them in a large document, and of nested conditions. The buffers grow on demand.
    element_sets: int = 1 << 11
    element_set_words: int = 1 << 18
    nested_conditions: int = 64
    # Buffers of twig joins, one set per thread: elements in lists, and twigs that match a batch. They grow on demand.
    listed_elements: int = 1 << 13
    twigs_found: int = 1 << 14
    # Documents are stamped in the buffers of a thread; stamps have 32 bits, and restart after this one.
    last_stamp: int = 1 << 30
    # A gate with more patterns than `heavy_gate` has a region of its own in joins of states and tests. The regions of
    # all states together have at most `region_rows` rows of 32 bytes. The queue of look-ups, one per thread, has room
    # for `queued_tests` at first.
    heavy_gate: int = 512
    region_rows: int = 1 << 23
    queued_tests: int = 1 << 12

    # A table of patterns is compacted when more entries than these are unused, and most of them; its names are
    # renumbered when there are more than these, and most are unused.
    unused_entries: int = 4096
    names: int = 1 << 16
    # The number of tree expressions cached with their entries: adding the same expression again needs no parsing.
    remembered_expressions: int = 1 << 15

    # Rows of ids and subscribers are laid out again when more than these, plus a quarter of the laid-out rows, have
    # been added or removed. Names of subscribers are dropped when at least these exist, and most are unused.
    changed_rows: int = 4096
    subscriber_names: int = 1024
    # The ids of a document are sorted if they are fewer than these, otherwise marked.
    marked_ids: int = 64

    def pending_bits(self, paths: int) -> int:
        """With more bits of pending paths than this, a base of `paths` paths gets a delta."""
        return min(self.most_pending_bits, max(self.fewest_pending_bits, int(self.pending_bits_per_root * paths**0.5)))
