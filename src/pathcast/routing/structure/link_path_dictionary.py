"""The dictionary of a link: label paths by number, which both ends learn from the messages.

The sending end numbers label paths as they occur in documents (`Sent`) and defines each once, in the first message that
has it: its parent's number and its last name. The receiving end (`ReceivedPaths`) stores the definitions.

Both are soft state. A dictionary has a random *epoch*, and a *digest* of all definitions up to each length. A message
has its epoch, the number of its first definition, and the digest after its definitions. A receiver that lacks
definitions, or has others, detects this and rejects the message; its answer reports how many it has, and the sender
defines again from there. So a message that is lost, duplicated or out of order, or an end that has lost its state,
costs a rejection or two and never a wrong path.

Invariant: paths and names are numbered in the order of their definitions; the first definition with a name spells it
out. Bounded: beyond `PATHS` paths or `NAMES` names a dictionary ends, and the next begins with the current document.
"""

from hashlib import blake2b

import numpy as np

from pathcast.documents import DocumentBatch, LabelPaths
from pathcast.documents.structure import (
    AT,
    ITEM_BYTES,
    OK,
    PATH_BYTES,
    S_ROWS,
    Definitions,
    NameBytes,
    read_definitions,
    reason,
    write_definitions,
)
from pathcast.errors import LimitError
from pathcast.kernels import Int32s
from pathcast.store import grown, offsets_of

from ..table.name_translation import Naming

PATHS, NAMES = 1 << 15, 1 << 11
_MASK = (1 << 64) - 1
_OTHER_PATHS = "the label paths differ from the label paths of earlier messages"
_MIX_A, _MIX_B = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F


class UndefinedError(Exception):
    """Definitions are truncated, malformed or refer to unknown paths."""


def chained(digest: int, parent: int, name: int) -> int:
    """The digest after one more definition; `name` is the digest of the name."""
    digest = ((digest ^ (parent + 2)) * _MIX_A + name) & _MASK
    digest = (digest ^ digest >> 29) * _MIX_B & _MASK
    return digest ^ digest >> 32


def name_digest(name: str) -> int:
    """A number that identifies a name."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


class Sent:
    """The sending end: numbers of label paths, and their definitions."""

    def __init__(self, epoch: int, paths: int = PATHS, names: int = NAMES) -> None:
        self.epoch = epoch
        self.labels = LabelPaths(capacity=paths)
        self.digests = [epoch]
        self._most_names = names
        self._wire_names: list[int] = []  # per path, the number of its name on the wire
        self._names_before: list[int] = []  # per path, the number of names defined before it
        self._wire_of: dict[int, int] = {}
        self._naming = Naming(self.labels.names)

    def __len__(self) -> int:
        return len(self.digests) - 1

    def translation(self, batch: DocumentBatch) -> Int32s:
        """For each name of a batch its number in `labels.names`; computed once per table of names."""
        return self._naming.of(batch)

    def number(self, names: Int32s, parents: Int32s, translate: Int32s, first: int = 0) -> Int32s | None:
        """The path of every element; parents count from `first`. None if the dictionary is full."""
        try:
            paths = self.labels.number(names, parents, translate, first)
        except LimitError:
            return None
        self._define()
        return paths if len(self._wire_of) <= self._most_names else None

    def child(self, parent: int, name: str) -> int:
        """The number of the path `parent` (-1: none) + `name`, assigned if new; `LimitError` if there is no space."""
        path = self.labels.child(parent, name)
        self._define()
        if len(self._wire_of) > self._most_names:
            raise LimitError(
                f"more than {self._most_names:,} different names of elements and attributes on this link; "
                "send the document without a structure annotation"
            )
        return path

    def definitions(self, first: int) -> bytes:
        """The definitions of the paths from `first` on."""
        known = self._names_before[first]
        names = [self.labels.names[name].encode() for name in list(self._wire_of)[known:]]
        edges = offsets_of([len(each) for each in names])
        spelled = NameBytes(np.frombuffer(b"".join(names), np.uint8), edges)
        out = np.empty(ITEM_BYTES * (len(self) - first) + int(edges[-1]), np.uint8)
        size = write_definitions(self.labels.parents, np.array(self._wire_names, np.int32), known, spelled, first, out)
        return out[:size].tobytes()

    def _define(self) -> None:
        """Add the new paths of `labels`."""
        parents, names = self.labels.parents, self.labels.name_ids
        for path in range(len(self), len(self.labels)):
            name = int(names[path])
            self._names_before.append(len(self._wire_of))
            self._wire_names.append(self._wire_of.setdefault(name, len(self._wire_of)))
            digest = name_digest(self.labels.names[name])
            self.digests.append(chained(self.digests[-1], int(parents[path]), digest))


class ReceivedPaths:
    """The receiving end: label paths as they were defined."""

    def __init__(self, epoch: int, paths: int = PATHS, names: int = NAMES, depth: int = 1000) -> None:
        self.epoch = epoch
        self.digests = [epoch]
        self.names: list[str] = []
        self._most_paths, self._most_names, self._deepest = paths, names, depth
        self._name_digests: list[int] = []
        self._names_at = [0]  # the number of names at each length
        self.parent: Int32s = np.empty(64, np.int32)
        self.name: Int32s = np.empty(64, np.int32)
        self.depth: Int32s = np.empty(64, np.int32)
        self.deepest = 0

    def __len__(self) -> int:
        return len(self.digests) - 1

    def learn(self, data: bytes, begin: int, end: int, first: int, count: int, digest: int) -> None:
        """Store `count` definitions, in `data[begin:end]`, from path `first` on.

        If they do not fit, raise `UndefinedError` and change nothing.
        """
        total = first + count
        if first > len(self):
            raise UndefinedError(f"label paths from number {first:,} on are defined, but only {len(self):,} are known")
        if total > self._most_paths:
            raise UndefinedError(f"it needs {total:,} label paths; at most {self._most_paths:,} are allowed")
        if total <= len(self):
            if self.digests[total] != digest:
                raise UndefinedError(_OTHER_PATHS)
            return
        fresh: list[tuple[int, int, int]] = []
        digests: list[int] = []
        last = self.digests[-1]
        defined, names = self._defined(data, begin, end, first, count)
        # The digest of a known path is part of the digest that is compared.
        for parent, name in defined[len(self) - first :]:
            above = 0 if parent < 0 else self.depth[parent] if parent < len(self) else fresh[parent - len(self)][2]
            depth = int(above) + 1
            fresh.append((parent, name, depth))
            of_name = self._name_digests[name] if name < len(self.names) else name_digest(names[name - len(self.names)])
            last = chained(last, parent, of_name)
            digests.append(last)
            if depth > self._deepest:
                raise UndefinedError(f"a label path has more than {self._deepest:,} names")
        if last != digest:
            raise UndefinedError(_OTHER_PATHS)
        if len(self.names) + len(names) > self._most_names:
            raise UndefinedError(
                f"the label paths have {len(self.names) + len(names):,} names; at most {self._most_names:,} are allowed"
            )
        self._commit(fresh, names, digests)

    def _defined(
        self, data: bytes, begin: int, end: int, first: int, count: int
    ) -> tuple[list[tuple[int, int]], list[str]]:
        """Parents and names of the paths from `first` on, and the new names."""
        if PATH_BYTES * count > end - begin:
            raise UndefinedError(f"truncated: {end - begin:,} bytes cannot define {count:,} label paths")
        before = self._names_at[first]
        parents, names = np.empty(count, np.int32), np.empty(count, np.int32)
        starts, lengths = np.empty(count, np.int64), np.empty(count, np.int64)
        state = np.zeros(S_ROWS, np.int64)
        given = np.frombuffer(data, np.uint8)
        defined = Definitions(parents, names, starts, lengths)
        why = read_definitions(given, begin, end, first, before, before + count, defined, state)
        if why != OK:
            raise UndefinedError(reason(why))
        new = range(max(0, len(self.names) - before), int(state[AT]) - before)
        try:
            spelled = [data[starts[at] : starts[at] + lengths[at]].decode() for at in new]
        except UnicodeDecodeError as error:
            raise UndefinedError("a name in the label paths is not UTF-8") from error
        return list(zip(parents.tolist(), names.tolist(), strict=True)), spelled

    def labels(self, path: int) -> tuple[str, ...]:
        """The names along a path, root first."""
        found = []
        while path >= 0:
            found.append(self.names[int(self.name[path])])
            path = int(self.parent[path])
        return tuple(reversed(found))

    def _commit(self, fresh: list[tuple[int, int, int]], names: list[str], digests: list[int]) -> None:
        before, after = len(self), len(self) + len(fresh)
        if after > len(self.parent):
            size = max(after, 2 * len(self.parent))
            self.parent, self.name, self.depth = (
                grown(column[:before], size) for column in (self.parent, self.name, self.depth)
            )
        rows = np.array(fresh, np.int32).reshape(-1, 3)
        self.parent[before:after], self.name[before:after], self.depth[before:after] = rows.T
        self.deepest = max(self.deepest, int(rows[:, 2].max(initial=0)))
        self.names += names
        self._name_digests += map(name_digest, names)
        self.digests += digests
        seen = self._names_at[-1]
        for _, name, _ in fresh:
            seen = max(seen, name + 1)
            self._names_at.append(seen)
