"""Engines' answers with opaque patterns: what an engine found by their trees, decided by their expressions.

Every engine passes its answers through these functions before it returns them, so that all of them are exact.
Cost: a look-up for a table without opaque patterns.
"""

from collections.abc import Callable

import numpy as np

from pathcast.documents import Document, DocumentBatch, Limits
from pathcast.store import offsets_of

from ..engine_contract import Engine, Entries, Mask, Offsets, SharedEntries, StreamMatches

_DEFAULT = Limits()


def _limits(engine: Engine) -> Limits:
    return getattr(engine, "limits", _DEFAULT)  # testing a protocol takes as long as matching a small document


def _counts(engine: Engine) -> bool:
    """Whether the engine is `Counting`."""
    return getattr(engine, "counting", False)


def decided(engine: Engine, batch: DocumentBatch, found: tuple[Offsets, Entries]) -> tuple[Offsets, Entries]:
    """The answer to `match_batch` and the like."""
    opaque = engine.table.opaque
    if opaque is None or not opaque.waiting(counting := _counts(engine)):
        return found
    return opaque.decided(batch, *found, _limits(engine), counting=counting)


def shared_decided(engine: Engine, batch: DocumentBatch, found: SharedEntries) -> SharedEntries:
    """The answer to `match_shared`. Groups hold no opaque patterns, and none are left for a document with an error."""
    if engine.table.opaque is None:
        return found
    offsets, entries = decided(engine, batch, (found.offsets, found.entries))
    sizes = np.diff(found.group_offsets)
    kept = np.repeat(~np.isin(np.arange(len(sizes)), list(batch.errors)), sizes)
    group_offsets = offsets_of(kept)[found.group_offsets].astype(np.int64)
    return found._replace(offsets=offsets, entries=entries, group_offsets=group_offsets, groups=found.groups[kept])


Stream = Callable[[Document, Mask | None, Entries | None], StreamMatches]


def decided_stream(
    engine: Engine, stream: Stream, document: Document, skip: Mask | None, link: Entries | None
) -> StreamMatches:
    """The answer to `match_stream`: opaque patterns are decided at the end, for links that nothing else has decided."""
    opaque = engine.table.opaque
    if opaque is None:
        return stream(document, skip, link)
    size = len(engine.table) if skip is None else len(skip)
    mask = opaque.mask(size)
    asked = mask if skip is None else mask & ~skip
    without = mask if skip is None else mask | skip
    found = stream(document, without, link)
    if link is not None:
        done = np.unique(link[found.entries])
        asked = asked & (link[:size] >= 0) & ~np.isin(link[:size], done)
    waiting = np.flatnonzero(asked).tolist()
    if not waiting:
        return found
    more = opaque.matching(waiting, document.alone(), _limits(engine))
    entries = np.append(found.entries, np.array(more, dtype=np.int32))
    positions = np.append(found.positions, np.full(len(more), len(document), dtype=np.int32))
    order = np.argsort(entries)
    return StreamMatches(entries[order], positions[order], len(document))
