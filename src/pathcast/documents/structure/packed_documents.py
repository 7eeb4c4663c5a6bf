"""Packed documents: the structure of each document as bytes, to be stored or sent beside it.

    DocumentBatch ──pack──▶ bytes per document ──unpack, with the documents──▶ DocumentBatch

For pipelines that parse in one stage and match in others: rows of a table are independent, so each document defines
its own label paths and names and refers to no dictionary. Values stay places in the document, which is sent along;
values that it does not contain literally (references, other encodings, the results of mediation) are in the
bytes. `structure_encoder_kernels.py` explains the bytes.

Invariant: `unpack(pack(batch))` has the elements, attributes, texts and values of the batch (not the encodings). Bytes
that are not a packed document, or that of another document, are an error in their place; every number in them is
checked before use.
Cost: for documents of 100 elements and 370 values some 2 KB, and some 10 µs either way.
"""

from collections.abc import Mapping

import numpy as np

from pathcast.errors import MessageError, PathcastError
from pathcast.kernels import Int32s, Int64s

from ..document_batch import Bytes, DocumentBatch
from ..expanded_name_table import Names
from ..label_paths import LabelPaths
from . import header_and_dictionary_decoder_kernels as header
from .element_decoder_kernels import PathTable
from .structure_batch_decoder import Decoding, batch_of, reason
from .structure_encoder_kernels import NO_ROOM, BatchPaths, Everything, NameBytes, Numbers, pack_documents


def pack(batch: DocumentBatch) -> tuple[Bytes, Int64s]:
    """The documents of a batch: number `i` is `data[edges[i] : edges[i + 1]]`, empty for one that has an error."""
    count, elements = batch.name_count, len(batch.name)
    identity = np.arange(count, dtype=np.int32)
    tree = LabelPaths(capacity=max(1, elements))
    of = tree.number(batch.name, batch.parent, identity)
    spelled = _spelled(batch)
    numbers = Numbers(
        np.full(len(tree), -1, np.int32),
        np.empty(len(tree), np.int32),
        np.empty(len(tree), np.int32),
        np.full(count, -1, np.int32),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.empty(batch.largest().elements, np.int32),
        np.zeros(2, np.int64),
    )
    everything = Everything(identity, np.ones(count, np.bool_))
    paths = BatchPaths(of, tree.parents, tree.name_ids)
    edges = np.zeros(len(batch) + 1, np.int64)
    size = 64 * len(batch) + 8 * (elements + len(batch.attribute_name) + len(batch.text_start))
    size += len(batch.arena) + 4 * len(spelled.data)
    while True:
        out = np.empty(size, np.uint8)
        done = pack_documents(
            batch.elements,
            batch.values,
            batch.position,
            batch.data_offsets,
            paths,
            spelled,
            everything,
            numbers,
            out,
            edges,
        )
        if done != NO_ROOM:
            return out[:done], edges
        size *= 2
        numbers.path_stamps[:] = numbers.name_stamps[:] = -1


def _spelled(batch: DocumentBatch) -> NameBytes:
    """The names that a batch has, by id; others are empty."""
    used = np.zeros(batch.name_count, np.bool_)
    used[batch.name] = used[batch.attribute_name] = True
    numbers = np.flatnonzero(used)
    spelled = [batch.name_of(number).encode() for number in numbers.tolist()]
    edges = np.zeros(batch.name_count + 1, np.int64)
    edges[numbers + 1] = [len(name) for name in spelled]
    np.cumsum(edges, out=edges)
    return NameBytes(np.frombuffer(b"".join(spelled), np.uint8), edges)


def unpack(
    packed: Bytes,
    edges: Int64s,
    data: Bytes,
    data_offsets: Int64s,
    names: Names,
    failed: Mapping[int, PathcastError] | None = None,
) -> DocumentBatch:
    """The batch of packed documents and the documents themselves; names are those of `names`, then the batch's own.

    `failed`: documents that are known to have none, and why. Others that cannot be unpacked have a `MessageError`.
    """
    decoding = Decoding(positions=True)
    why = np.zeros(len(edges) - 1, np.int64)
    rows = np.zeros((len(edges), header.R_ROWS), np.int64)
    while True:  # at most three times: each time at least one more check holds for all that remain
        header.read_headers(packed, edges, data_offsets, rows, why, decoding.state)
        paths, spelled = int(rows[-1, header.R_PATH]), int(rows[-1, header.R_NAME])
        defined = header.Definitions(
            np.empty(paths, np.int32),
            np.empty(paths, np.int32),
            np.empty(spelled, np.int64),
            np.empty(spelled, np.int64),
        )
        depths = np.empty(paths, np.int32)
        if header.read_dictionaries(packed, rows, defined, depths, why, decoding.state):
            continue
        known = len(names)
        ids, own_names = _numbered(packed, defined.starts, defined.lengths, names, known)
        table = PathTable(defined.parents, ids[defined.names], depths)
        decoded = decoding.arrays(*rows[-1, header.R_ELEMENTS :].tolist())
        deepest = int(depths.max(initial=0))
        if not decoding.decode(packed, rows, range(len(why)), table, deepest, ids, decoded, why):
            break
    errors: dict[int, PathcastError] = dict(failed or {})
    for number in np.flatnonzero(why).tolist():
        text = f"the structure belongs to another document or is damaged: {reason(int(why[number]))}"
        errors.setdefault(number, MessageError(f"{text}; parse the document again"))
    return batch_of(decoded, rows, (data, data_offsets), packed, (names, known, own_names), errors)


def _numbered(packed: Bytes, starts: Int64s, lengths: Int64s, names: Names, known: int) -> tuple[Int32s, list[str]]:
    """The ids of spelled names: those of a table, and behind them those that it lacks."""
    slots = np.full(1 << max(4, 2 * len(starts) - 1).bit_length(), -1, np.int32)
    firsts, number_of = np.empty(len(starts), np.int32), np.empty(len(starts), np.int32)
    count = header.distinct_names(packed, starts, lengths, slots, firsts, number_of)
    own: list[str] = []
    ids = np.empty(count, np.int32)
    for number, place in enumerate(firsts[:count].tolist()):
        begin = int(starts[place])
        name = packed[begin : begin + int(lengths[place])].tobytes().decode("utf-8", "replace")
        entry = names.get(name)
        if entry is None or entry >= known:
            ids[number] = known + len(own)
            own.append(name)
        else:
            ids[number] = entry
    return ids[number_of], own
