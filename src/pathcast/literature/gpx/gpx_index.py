"""The index: all arrays that the kernel reads, by name.

Predicate tables (`predicate_lookup_tables.py`), the paths of each predicate (for counting, or as clusters), patterns
that demand only a length, the joins of patterns with branches, and the list of delegated patterns. The arrays are also
the engine's snapshot.
"""

from collections.abc import Sequence

import numpy as np

from pathcast.kernels import AnyArray, Bools, Int32s, Int64s
from pathcast.matching.table import PatternTable
from pathcast.store import offsets_of

from .branch_join_kernels import C_ROWS, Joins
from .document_matching_kernels import Index
from .pattern_table_encoder import Paths, Use, encode_table
from .predicate_lookup_tables import Columns, predicate_tables
from .predicate_numbering_kernels import DISTANCE, DOCUMENT, FILTER
from .publication_matching.attribute_filter_kernels import (
    Filters,
    FilterTests,
    Literals,
    NumberTests,
    TextTests,
    UnlikeTests,
)
from .publication_matching.satisfied_path_kernels import COUNT, LAST, Clusters, Lengths
from .publication_matching.structure_predicate_kernels import Distances, Rows, Structure

Arrays = dict[str, AnyArray]


def build_index(table: PatternTable, mode: int) -> Arrays:
    """The index of a table for one way of finding paths."""
    paths = encode_table(table)
    names = len(table.names)
    found = _lists(paths) if mode == COUNT else _clusters(paths, last=mode == LAST)
    return {
        "entries": np.array([len(table)], dtype=np.int64),
        "delegated": np.array(paths.delegated, dtype=np.int32),
        "is_tag": _tags(Columns(paths), names),
        **predicate_tables(paths, names),
        **found,
        **_lengths(paths.lengths),
        **_joins(paths.uses, table),
    }


def kernel_index(arrays: Arrays) -> Index:
    """The index in the form that the kernel reads."""
    return Index(
        is_tag=arrays["is_tag"],
        structure=Structure(
            rows=Rows(arrays["row_equal"], arrays["row_least"], arrays["cells"]),
            position_rows=arrays["position_row"],
            distances=Distances(
                begins=arrays["distance_begin"],
                slots=arrays["distance_slots"],
                keys=arrays["distance_keys"],
                rows=arrays["distance_row"],
            ),
            end_begins=arrays["end_begin"],
            end_rows=arrays["end_row"],
        ),
        filters=_kernel_filters(arrays),
        clusters=Clusters(
            member_begins=arrays["member_begin"],
            members=arrays["members"],
            other_begins=arrays["other_begin"],
            others=arrays["others"],
            entries=arrays["path_entry"],
        ),
        lengths=Lengths(arrays["length_entries"], arrays["length_ends"]),
        joins=Joins(
            use_begins=arrays["use_begin"],
            use_entries=arrays["use_entry"],
            use_parts=arrays["use_part"],
            chain_begins=arrays["chain_begin"],
            chain=arrays["chain"],
            branch_parts=arrays["branch_part"],
            branch_full=arrays["branch_full"],
        ),
    )


def _kernel_filters(arrays: Arrays) -> Filters:
    return Filters(
        asks=arrays["asks"],
        steps=arrays["filter_steps"],
        tests=FilterTests(
            keys=arrays["filter_keys"],
            slots=arrays["filter_slots"],
            exists=arrays["filter_exists"],
            numbers=NumberTests(arrays["limits"], arrays["limit_begin"], arrays["limit_predicate"]),
            texts=TextTests(arrays["text_keys"], arrays["text_slots"], arrays["text_predicate"]),
            unlike=UnlikeTests(arrays["unlike_begin"], arrays["unlike_text"], arrays["unlike_predicate"]),
        ),
        literals=Literals(
            texts=arrays["literals"],
            begins=arrays["literal_begin"],
            hashes=arrays["literal_hashes"],
            slots=arrays["literal_slots"],
        ),
    )


def _tags(columns: Columns, names: int) -> Bools:
    """Which names are tags of some predicate: other elements of a document only make paths longer."""
    is_tag = np.zeros(names, dtype=np.bool_)
    is_tag[columns.tag[(columns.kind != FILTER) & (columns.tag != DOCUMENT)]] = True
    is_tag[columns.other[columns.kind == DISTANCE]] = True
    return is_tag


def _lists(paths: Paths) -> Arrays:
    """For each predicate the paths that have it, and for each path its number of predicates."""
    sizes = np.diff(paths.begin)
    members, begin = _grouped(np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), paths.predicates, paths)
    return {
        "member_begin": begin,
        "members": members,
        "other_begin": np.zeros(1, dtype=np.int64),
        "others": sizes.astype(np.int32),
        "path_entry": paths.entry,
    }


def _clusters(paths: Paths, *, last: bool) -> Arrays:
    """Paths by their access predicate, each with its other predicates.

    Paths are renumbered, so that those of a cluster are contiguous. The other predicates are in the order in which they
    are looked up: filters, then structure from the last step back.
    """
    sizes = np.diff(paths.begin)
    access = paths.begin[:-1] + (paths.structural - 1 if last else 0)
    order, begin = _grouped(np.arange(len(sizes), dtype=np.int32), paths.predicates[access], paths)
    other_sizes = sizes[order] - 1
    other_begin = offsets_of(other_sizes)
    member = np.repeat(np.arange(len(order)), other_sizes)
    # The k-th other predicate, counted from the path's end, without the access predicate.
    place = paths.begin[order + 1][member] - 1 - (np.arange(int(other_begin[-1])) - other_begin[member])
    place -= place <= access[order][member]
    return {
        "member_begin": begin,
        "members": np.zeros(0, dtype=np.int32),
        "other_begin": other_begin,
        "others": paths.predicates[place],
        "path_entry": paths.entry[order],
    }


def _grouped(values: Int32s, keys: Int32s, paths: Paths) -> tuple[Int32s, Int64s]:
    """Values sorted by key, and where those of each predicate begin."""
    order = np.argsort(keys, kind="stable")
    counts = np.bincount(keys, minlength=len(paths.forms))
    return values[order], offsets_of(counts)


def _lengths(lengths: Sequence[tuple[int, int]]) -> Arrays:
    """Patterns of `*` alone by length; a path of length `n` satisfies the first `length_ends[n]`."""
    wanted = np.array([length for length, _ in lengths], dtype=np.int64)
    ends = np.searchsorted(wanted, np.arange(int(wanted.max(initial=0)) + 1), side="right").astype(np.int64)
    return {"length_entries": np.array([entry for _, entry in lengths], dtype=np.int32), "length_ends": ends}


def _joins(uses: list[list[Use]], table: PatternTable) -> Arrays:
    """For each piece its uses, for each use the branches along it, and for each branch its part of the branch above."""
    numbers: dict[tuple[int, int], int] = {}
    branch_part: list[int] = []
    branch_full: list[int] = []
    use_begin, chain_begin = [0], [0]
    use_entry: list[int] = []
    use_part: list[int] = []
    chain: list[tuple[int, int, int, int]] = []
    for piece_uses in uses:
        for entry, parts, at in piece_uses:
            piece = parts.pieces[at]
            for branch, place in zip(piece.branches, piece.places, strict=True):
                number = numbers.setdefault((entry, branch), len(numbers))
                if number == len(branch_full):
                    branch_full.append((1 << parts.branches[branch].parts) - 1)
                    branch_part.append(1 << parts.branches[branch].part)
                tag, occurrence = (
                    (-1, 0) if place.tag is None else (table.names.add(place.tag.name), place.tag.occurrence)
                )
                chain.append((number, tag, occurrence, place.steps))
            chain_begin.append(len(chain))
            use_entry.append(entry)
            use_part.append(1 << piece.part)
        use_begin.append(len(use_entry))
    return {
        "use_begin": np.array(use_begin, dtype=np.int64),
        "use_entry": np.array(use_entry, dtype=np.int32),
        "use_part": np.array(use_part, dtype=np.int64),
        "chain_begin": np.array(chain_begin, dtype=np.int64),
        "chain": np.ascontiguousarray(np.array(chain, dtype=np.int32).reshape(-1, C_ROWS).T),
        "branch_part": np.array(branch_part, dtype=np.int64),
        "branch_full": np.array(branch_full, dtype=np.int64),
    }
