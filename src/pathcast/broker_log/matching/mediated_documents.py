"""Documents matched by a mapping: read, rewritten into the feed's global schema as element arrays, and matched there.

    bodies ──group by mapping──▶ read ──rewrite──▶ match ──▶ the matches of all, in the order of the documents

The bytes stay as they are. A document without a mapping is matched as it is, so the documents of a log before and after
a change of the mediator can be in one group.

Invariant: the same mapping and the same bytes give the same matches, live and when the log is read again.
Cost: two walks over the elements in addition to reading and matching (`mediation`), and a call of the matcher per
mapping. The tables of up to `_KEPT` mappings are cached for the process.
"""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from pathcast.documents import Document, Limits, Names, Reader, read
from pathcast.errors import MappingError, PathcastError
from pathcast.kernels import Int32s, Int64s
from pathcast.matching import View
from pathcast.mediation import Mapping
from pathcast.mediation.mappings import item_of, read_tree, to_bytes
from pathcast.mediation.rewriting import EventRewriter
from pathcast.mediation.schemas import nodes_of

from ..broker_records import FeedMediator
from ..document_groups_from_log import LoggedDocuments
from ..effective_feed_settings import UNLIMITED
from ..feed_mediators import MediatorSpans, mediator_at

_KEPT: Final = 128
# A mapping has a table of its elements and their names, in memory.
_MOST_ELEMENTS: Final = 20_000
_MOST_PAIRS: Final = 1 << 22
# Names of mappings that an error lists.
_LISTED: Final = 10


class MatchedByMapping(NamedTuple):
    """The matches of documents, and the errors of those that have none; `unmatched` of these could be rewritten.

    The patterns of document i are `patterns[offsets[i] : offsets[i + 1]]`.
    """

    offsets: Int64s
    patterns: Int32s
    errors: dict[int, PathcastError]
    unmatched: int


def schema_of(mediator: FeedMediator | None, given: str | None, attributes: Table[str, str] | None) -> str:
    """The name of a document's mapping: as the publisher states it, or the only one; `MappingError` otherwise."""
    if mediator is None:
        raise MappingError(
            f"unknown schema {given!r}: the feed has no mediator; publish without a schema, or ask the feed's "
            "administrator for a mapping"
        )
    name = given or (attributes or {}).get("dataschema")
    known = ", ".join(map(repr, sorted(mediator.mappings)[:_LISTED]))
    if name is None:
        if len(mediator.mappings) == 1:
            return next(iter(mediator.mappings))
        raise MappingError(
            f"the document names no schema, but the feed has mappings for {known}; name one of these schemas with "
            "?schema=… or the attribute dataschema"
        )
    if name not in mediator.mappings:
        raise MappingError(
            f"unknown schema {name!r}; the feed has mappings for {known}; name one of them with ?schema=… or the "
            "attribute dataschema, or ask the feed's administrator for a mapping"
        )
    return name


def mappings_of(documents: LoggedDocuments, spans: MediatorSpans) -> dict[int, str | PathcastError]:
    """By place, the mappings of logged documents; an error where there is none."""
    found: dict[int, str | PathcastError] = {}
    for place, name in documents.schemas.items():
        mediator = mediator_at(spans, documents.sequences[place])
        text = None if mediator is None else mediator.mappings.get(name)
        found[place] = (
            MappingError(f"the log has no mapping for the schema {name!r}; run pathcast log verify")
            if text is None
            else text
        )
    return found


def match_mediated(
    view: View,
    names: Names,
    bodies: Sequence[bytes],
    mappings: Table[int, str | PathcastError],
    limits: Limits,
) -> MatchedByMapping:
    """Match documents, those at the places of `mappings` rewritten; `names` are those of the view's subscriptions."""
    errors: dict[int, PathcastError] = {}
    groups: dict[str | None, list[int]] = {}
    for place in range(len(bodies)):
        mapping = mappings.get(place)
        if isinstance(mapping, PathcastError):
            errors[place] = mapping
        else:
            groups.setdefault(mapping, []).append(place)
    documents: list[Int64s] = []
    patterns: list[Int32s] = []
    unmatched = 0
    within = view.within(limits)
    for text, places in groups.items():
        chosen = [bodies[place] for place in places]
        offsets, found, wrong, late = _matched(within, names, chosen, text, limits)
        documents.append(np.repeat(np.array(places, dtype=np.int64), np.diff(offsets)))
        patterns.append(np.array(found, dtype=np.int32))  # a copy: the next match reuses the buffer
        errors |= {places[at]: error for at, error in wrong.items()}
        unmatched += late
    return MatchedByMapping(*_in_order(len(bodies), documents, patterns), errors, unmatched)


def _matched(
    view: View, names: Names, bodies: list[bytes], text: str | None, limits: Limits
) -> tuple[Int64s, Int32s, Table[int, PathcastError], int]:
    """Matches of documents with one mapping, or none: offsets, patterns, errors, and how many came while matching."""
    if text is None:
        batch = Reader(names, limits, "refuse").read(bodies)
        readable = len(batch.errors)
        offsets, found = view.match_ids(batch)
        return offsets, found, batch.errors, len(batch.errors) - readable
    rewriter = _rewriter(text)
    batch = Reader(rewriter.names, limits, "refuse").read(bodies)
    with rewriter.lent(batch, names) as (rewritten, _):
        rewritable = len(rewritten.errors)
        offsets, found = view.match_ids(rewritten)
        return offsets, found.copy(), rewritten.errors, len(rewritten.errors) - rewritable


def _in_order(count: int, documents: list[Int64s], patterns: list[Int32s]) -> tuple[Int64s, Int32s]:
    """Offsets and patterns of `count` documents, from the patterns of each group and the document of each."""
    places = np.concatenate([np.empty(0, dtype=np.int64), *documents])
    order = np.argsort(places, kind="stable")
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(places, minlength=count), out=offsets[1:])
    return offsets, np.concatenate([np.empty(0, dtype=np.int32), *patterns])[order]


@lru_cache(_KEPT)
def _rewriter(text: str) -> EventRewriter:
    """What rewrites documents by the text of a mapping; any thread may use it."""
    return EventRewriter(Mapping.read(text).plan, Names())


def rewritten(document: Document, text: str) -> Document:
    """A document in the global schema, for an explanation; positions are those in the rewritten document."""
    return read(to_bytes(Mapping.read(text).rewrite(item_of(document))), limits=UNLIMITED)


def check_mediator(mediator: FeedMediator) -> None:
    """`MappingError` or `LimitError` unless the broker can match documents with these mappings."""
    try:
        tree = read_tree(mediator.schema)
    except PathcastError as error:
        raise MappingError(f"the mediator's global schema (`schema`) is malformed: {error.reason}") from None
    paths = set(nodes_of(tree))
    for name, text in mediator.mappings.items():
        try:
            _check(name, text, paths)
            _rewriter(text)
        except PathcastError as error:
            raise MappingError(f"invalid mapping {name!r}: {error.reason}") from None


def _check(name: str, text: str, paths: set[str]) -> None:
    mapping = Mapping.read(text)
    if mapping.name != name:
        raise MappingError(f"its key 'name' is {mapping.name!r}, expected {name!r}; correct the key")
    elements, names = len(mapping.local), len({node.name for node in mapping.local.paths.values()})
    if elements > _MOST_ELEMENTS or elements * names > _MOST_PAIRS:
        raise MappingError(
            f"its schema has {elements:,} elements and {names:,} names; at most {_MOST_ELEMENTS:,} elements and "
            f"{_MOST_PAIRS:,} for elements × names are possible; map a part of the schema"
        )
    for local, there in mapping.correspondence.items():
        if there not in paths:
            raise MappingError(f"{local!r} corresponds to {there!r}, which the global schema lacks; correct the path")
