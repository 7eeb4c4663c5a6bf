"""The splitter: the pieces of a file in, its entries out, each as a document of its own.

    bytes ──utf8_stream──▶ UTF-8 ──find_children (kernel)──▶ where children of the watched element begin and end
                                                                   │ their names, by outer_elements
                                                                   ▼
                                          selected: an `Entry`; on the path: watched next; otherwise skipped

Of what lies outside the entries, the prolog and the start tags around entries are read as XML; of all else only the
tokens, to find where the next element begins. What lies inside an entry is for the reader of documents to judge.

An entry with a mistake is one bad document, and the next one follows, if the entry has as many end tags as start tags
and nothing that hides one: see `element_boundary_kernels.py`. Otherwise no later boundary is sure, and the file ends
with that entry. `docs/guides/entries.md` has the rules for users.

Invariant: the entries do not depend on how the file was cut into pieces.
Memory: the piece that is being read, and the largest entry up to `limits.size`; a larger one is not kept.
"""

from typing import NamedTuple

import numpy as np

from pathcast.errors import DocumentError, PathcastError, SizeLimitError

from ..document_limits import AMPLIFICATION_FLOOR, Limits
from ..expanded_name_table import expanded
from ..expat_reader import Entities
from .element_boundary_kernels import (
    AFTER,
    AT,
    BEGIN,
    BROKEN,
    CHILD,
    CLOSE,
    COUNT,
    DEPTH,
    DOCTYPE,
    DOUBLE,
    END,
    FIELDS,
    HYPHENS,
    IS_XML,
    LONG,
    MISNAMED,
    MORE,
    NAME_END,
    NAME_LENGTH,
    OPEN_TAG,
    OUTSIDE,
    PARENT,
    PLACE,
    ROOTED,
    ROWS,
    SECOND,
    SINGLE,
    START,
    STOP,
    STOPS,
    STRAY,
    TAG,
    TAG_END,
    TEXT,
    TOKEN,
    WATCHED,
    find_children,
)
from .entry_path import EntryPath
from .outer_elements import LONGEST_DOCTYPE, OuterElement, Prolog, end_of_doctype
from .utf8_stream import HEAD, Piece, Utf8Stream

# The fewest bytes that are worth a scan, and the rows and bytes of a name that one has room for.
_PIECE = 1 << 16
_MOST_ROWS = 4_096
_NAME_ROOM = 1 << 16
_PLACES = [BEGIN, NAME_END, TAG_END, CLOSE, STOP]
# Start tags whose meaning is kept, and bytes of one.
_KEPT, _LONGEST_KEPT = 256, 4_096
_REPEATED = (
    "repeating the document type and namespaces in every entry gives the entries many times the bytes of the file"
)
# Names in errors are cut.
_SHOWN = 100
_BOM = b"\xef\xbb\xbf"
_MISTAKES = {
    STRAY: "a '<' does not begin a tag, comment, CDATA section or processing instruction; write it as &lt;",
    OPEN_TAG: "a tag contains '<'; close the tag before it, or write '<' as &lt;",
    HYPHENS: "a comment contains '--'; end the comment with '-->'",
    OUTSIDE: "text or an end tag is outside the root element; remove it",
    SECOND: "the file has a second root element; remove it",
    LONG: f"an element's name has more than {_NAME_ROOM:,} bytes; shorten it",
}


class Entry(NamedTuple):
    """An entry of a file: the document, its number (from 1), and where it begins.

    The offset counts bytes of the file's UTF-8 form: in a file in UTF-8, bytes of the file. An entry with an error is
    no document: it has too many bytes, which were not kept, or the file ends there, and `document` is what there is.
    """

    document: bytes
    number: int
    offset: int
    error: PathcastError | None = None


class _Choice(NamedTuple):
    """Whether a child is an entry, and what comes before its start tag and after its name to make it a document."""

    is_entry: bool
    before: bytes
    inside: bytes

    @property
    def added(self) -> int:
        """The bytes that are not the entry's own."""
        return len(self.before) + len(self.inside)


class Splitter:
    """Splits one file. `feed` it pieces, then `finish`; `done` as soon as no piece can have another entry."""

    def __init__(
        self,
        path: EntryPath,
        limits: Limits,
        entities: Entities = "refuse",
        *,
        encoding: str | None = None,
        piece: int = _PIECE,
    ) -> None:
        """Gathers pieces to at least `piece` bytes; `encoding`, a codec of Python, overrides what the file declares."""
        self.done = False
        self._text, self._steps, self._limits = path.text, path.steps, limits
        self._piece = piece
        self._input = Utf8Stream(encoding)
        self._prolog = Prolog(limits, entities)
        self._outer = [OuterElement(self._prolog)]
        self._buffer, self._base = bytearray(), 0
        self._waiting: list[Piece] = []
        self._waiting_size = self._count = self._place = self._added = 0
        self._known: dict[bytes, _Choice] = {}
        self._open: _Choice | None = None
        self._names = np.zeros(_NAME_ROOM, dtype=np.uint8)
        self._rows = np.zeros((ROWS, _MOST_ROWS + 1), dtype=np.int64)
        self._state = np.zeros(FIELDS, dtype=np.int64)
        self._state[STOPS] = len(self._steps) > 1
        self._begun = False

    def feed(self, data: Piece) -> list[Entry]:
        """The entries that end in this piece, or before, if more bytes were needed to see it."""
        if self.done:
            return []
        piece, error = self._input.convert(data)
        return self._take(piece, error, final=False)

    def finish(self) -> list[Entry]:
        """The last entries; the last one has an error if the file ends too early."""
        if self.done:
            return []
        piece, error = self._input.convert(b"", final=True)
        return self._take(piece, error, final=True)

    def fail(self, error: PathcastError) -> list[Entry]:
        """The last entries of a file whose next piece cannot be read."""
        return [] if self.done else self._take(b"", error, final=True)

    def _take(self, piece: Piece, error: PathcastError | None, *, final: bool) -> list[Entry]:
        self._waiting.append(piece)
        self._waiting_size += len(piece)
        final = final or error is not None
        if self._waiting_size < self._piece and not final:
            return []
        for each in self._waiting:
            self._buffer += each
        self._waiting, self._waiting_size = [], 0
        found: list[Entry] = []
        size = len(self._buffer)
        self._buffer += bytes(AFTER)
        try:
            if self._begins(size, final=final):
                self._scan(size, found, final=final)
                if final:
                    self._place = size
                    if error is not None:
                        raise error
                    self._end(size)
                self._forget(size)
        except PathcastError as refused:
            found.append(self._stop(size, refused))
        if self.done:
            self._buffer = bytearray()
        else:
            del self._buffer[-AFTER:]
        return found

    def _begins(self, size: int, *, final: bool) -> bool:
        """Whether the file's first bytes have been read: the byte order mark and the XML declaration."""
        if self._begun:
            return True
        if size < HEAD and not final:
            return False
        self._begun = True
        begin = len(_BOM) if self._buffer.startswith(_BOM) else 0
        self._state[PLACE] = begin
        if self._buffer.startswith(b"<?xml", begin) and self._buffer[begin + 5] in b" \t\r\n":
            end = self._buffer.find(b"?>", begin, HEAD)
            if end < 0:
                raise DocumentError(f"the XML declaration has no end in the first {HEAD:,} bytes; close it with '?>'")
            self._prolog.declaration = bytes(self._buffer[begin : end + 2])
            self._state[PLACE] = end + 2
        return True

    def _scan(self, size: int, found: list[Entry], *, final: bool) -> None:
        """Read as far as the data go; rows of children become entries."""
        data, view = np.frombuffer(self._buffer, dtype=np.uint8), memoryview(self._buffer)
        state, rows = self._state, self._rows
        try:
            while True:
                why = find_children(data, size, self._names, state, rows)
                count = state.item(COUNT)
                if count and not state[STOPS]:
                    self._entries(view, count, found)
                elif count and self._outer[-1].depth == 0:  # a root without content
                    self._selected(view)
                if count:
                    rows[:, 0] = rows[:, count]
                    state[COUNT] = 0
                if why >= BROKEN:
                    self._place = state.item(AT)
                    raise self._unsure(_MISTAKES[why] if why != MISNAMED else self._misnamed(view))
                if why == CHILD and state[DEPTH] > state[WATCHED]:
                    child = self._selected(view)
                    if child is not None:
                        self._watch([*self._outer, child])
                elif why == PARENT:
                    self._ascend(view)
                elif why == MORE or (why == DOCTYPE and not self._doctype(size, final=final)):
                    return
        finally:
            del data
            view.release()

    # Outer elements.

    def _doctype(self, size: int, *, final: bool) -> bool:
        """Read the document type at the state's place; False if the data cut it."""
        begin = self._place = self._state.item(PLACE)
        end = end_of_doctype(self._buffer, begin)
        if (size if end < 0 else end) - begin > LONGEST_DOCTYPE:
            raise SizeLimitError(
                f"the document type has more than {LONGEST_DOCTYPE:,} bytes, which every entry would repeat; shorten it"
            )
        if end < 0 and not final:
            return False
        if end < 0:
            raise DocumentError("the document type does not end, or is not well-formed; correct the document type")
        if self._prolog.doctype:
            raise DocumentError("the file has a second document type; remove it")
        self._prolog.doctype = bytes(self._buffer[begin:end])
        self._state[PLACE] = end
        return True

    def _selected(self, view: memoryview) -> OuterElement | None:
        """The child in the first row, if it is on the path; the root must be."""
        outer = self._outer[-1]
        self._place, _, end = self._rows[BEGIN : TAG_END + 1, 0].tolist()
        child = outer.below(view[self._place : end].tobytes())
        if self._steps[outer.depth].selects(child.uri, child.local):
            return child
        if outer.depth == 0:
            raise self._other_root(child.uri, child.local)
        return None

    def _ascend(self, view: memoryview) -> None:
        """Watch the children of the element around the one that has ended."""
        self._place = self._state.item(TAG)
        name = view[self._place + 2 : self._state.item(PLACE) - 1].tobytes().rstrip()
        if name != self._outer[-1].name:
            raise self._unsure(_closes(name, self._outer[-1].name))
        self._watch(self._outer[:-1])

    def _watch(self, outer: list[OuterElement]) -> None:
        self._outer = outer
        self._known, self._open = {}, None
        self._state[WATCHED] = outer[-1].depth
        self._state[STOPS] = outer[-1].depth < len(self._steps) - 1

    # Entries.

    def _entries(self, view: memoryview, count: int, found: list[Entry]) -> None:
        """The entries among complete children."""
        begins, name_ends, tag_ends, _, stops, are_xml, are_same = self._rows[:, :count].tolist()
        number, base, most = self._count, self._base, self._limits.size
        choice, by_name = self._open, not self._prolog.has_subset
        for row in range(count):
            begin, stop = begins[row], stops[row]
            is_as_before = row and by_name and are_same[row] and not are_xml[row] and not are_xml[row - 1]
            if choice is None or (row and not is_as_before):
                choice = self._choice(view, begin, tag_ends[row] if are_xml[row] or not by_name else name_ends[row])
            if not choice.is_entry:
                continue
            number += 1
            self._added += choice.added
            if self._added > AMPLIFICATION_FLOOR and self._added > self._limits.amplification * (base + stop):
                self._place, self._count = begin, number - 1
                raise self._limits.exceeded("amplification", _REPEATED)
            if stop - begin > most:
                error = self._limits.exceeded("size", f"the entry has {stop - begin:,} bytes")
                found.append(Entry(b"", number, base + begin, error))
            elif choice.inside:
                name_end = name_ends[row]
                document = b"".join((choice.before, view[begin:name_end], choice.inside, view[name_end:stop]))
                found.append(Entry(document, number, base + begin))
            else:
                found.append(Entry(choice.before + view[begin:stop], number, base + begin))
        self._count, self._open = number, None

    def _choice(self, view: memoryview, begin: int, end: int) -> "_Choice":
        """What becomes of a child with this start tag, of which only the name counts if the rest is left out."""
        tag = view[begin:end].tobytes()
        choice = self._known.get(tag)
        if choice is None:
            outer, step = self._outer[-1], self._steps[-1]
            uri, local, before, inside = outer.child(tag if tag.endswith(b">") else tag + b">")
            is_entry = step.selects(step.uri or "" if uri is None else uri, local)
            if outer.depth == 0 and not is_entry:
                self._place = begin
                raise self._other_root(uri or "", local)
            if len(self._known) >= _KEPT:
                self._known.clear()
            choice = _Choice(is_entry, before, inside)
            if len(tag) <= _LONGEST_KEPT:
                self._known[tag] = choice
        return choice

    def _open_child(self) -> "_Choice | None":
        """What becomes of the child that is open, if the watched element's children may be entries."""
        state = self._state
        if state[STOPS] or state[DEPTH] <= state[WATCHED]:
            return None
        if self._open is None:
            begin, name_end, tag_end = self._rows[[BEGIN, NAME_END, TAG_END], 0].tolist()
            whole = self._rows[IS_XML, 0] or self._prolog.has_subset
            with memoryview(self._buffer) as view:
                self._open = self._choice(view, begin, tag_end if whole else name_end)
        return self._open

    # The end of a piece, and of the file.

    def _forget(self, size: int) -> None:
        """Drop what is not needed any more: all before the open entry, or before the token that the data cut."""
        state, row = self._state, self._rows[:, 0]
        token, above = state.item(TOKEN), state.item(DEPTH) - state.item(WATCHED)
        keep = max(state.item(PLACE) - 1, 0)
        if (token in (START, DOUBLE, SINGLE) and above == 0) or (token == END and above <= 1):
            keep = min(keep, state.item(TAG))
            if size - keep > self._limits.size:
                self._place = keep
                raise self._limits.exceeded("size", f"a tag has at least {size - keep:,} bytes")
        choice = self._open_child()
        if choice is not None and choice.is_entry and size - row.item(BEGIN) <= self._limits.size:
            keep = min(keep, row.item(BEGIN))
        del self._buffer[:keep]
        self._base += keep
        state[[PLACE, TAG]] -= keep
        row[_PLACES] -= keep

    def _end(self, size: int) -> None:
        """The file ends here."""
        state = self._state
        self._place = size
        if not state[ROOTED]:
            raise DocumentError("the file has no root element; give a file with exactly one root element")
        if state[DEPTH] or state[TOKEN] != TEXT or state[PLACE] < size:
            raise DocumentError(
                "the file ends before the end of its root element, or inside a tag or comment; give the complete file"
            )
        self.done = True

    def _stop(self, size: int, error: PathcastError) -> Entry:
        """The last entry of a file that ends with an error: what there is of the open entry, or no document."""
        self.done = True
        try:
            choice = self._open_child()
        except PathcastError as earlier:
            choice, error = None, earlier
        if choice is None or not choice.is_entry:
            return Entry(b"", self._count + 1, self._base + self._place, error)
        begin = self._rows.item(BEGIN, 0)
        rest = bytes(self._buffer[begin:size]) if begin >= 0 else b""
        return Entry(rest, self._count + 1, self._base + begin, error)

    def _unsure(self, mistake: str) -> DocumentError:
        where = f"at byte {self._base + self._place:,} of the file"
        return DocumentError(
            f"{mistake} ({where}); reading stops here, because the start of the next entry is uncertain"
        )

    def _misnamed(self, view: memoryview) -> str:
        tag = view[self._place + 2 : self._state.item(PLACE) - 1].tobytes().rstrip()
        return _closes(tag, self._names[: self._state.item(NAME_LENGTH)].tobytes())

    def _other_root(self, uri: str, local: str) -> DocumentError:
        name = expanded(uri, local)[:_SHOWN]
        hint = f"; write a name in a namespace as Q{{{uri[:_SHOWN]}}}{local[:_SHOWN]} or with a prefix" if uri else ""
        return DocumentError(f"the root element is {name}, which {self._text} does not select{hint}")


def _closes(name: bytes, other: bytes) -> str:
    shown, of = (each[:_SHOWN].decode("utf-8", "replace") for each in (name, other))
    return f"</{shown}> closes <{of}>; correct one of the two, or a tag between them"
